"""cluster.yaml is a file that Ray's own cluster launcher accepts."""

from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

CLUSTER = Path(__file__).parents[1] / "cluster.yaml"


def validate(config: dict[str, Any]) -> None:
    validate_config(prepare_config(config))


def test_the_launcher_accepts_cluster_yaml() -> None:
    validate(yaml.safe_load(CLUSTER.read_text()))


def test_a_misspelt_key_is_refused() -> None:
    config = yaml.safe_load(CLUSTER.read_text())
    config["provider"]["workers_ips"] = config["provider"].pop("worker_ips")
    with pytest.raises(click.ClickException):
        validate(config)


def test_starting_ray_sets_token_authentication_on_every_node() -> None:
    config = yaml.safe_load(CLUSTER.read_text())
    for command in config["head_start_ray_commands"] + config["worker_start_ray_commands"]:
        assert "RAY_AUTH_MODE=token" in command
