"""Files that other programs read: validated by Ray's own validator, or against a strict list of their fields."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.config import ROOT

LAUNCHERS = ("cluster.yaml", "deploy/cluster-aws.yaml")
CONTAINER: dict[str, Any] = {
    "name": str,
    "image": str,
    "workingDir": str,
    "command": list,
    "env": [{"name": str, "value": str, "valueFrom": {"secretKeyRef": {"name": str, "key": str}}}],
    "resources": {"requests": dict, "limits": dict},
}
POD: dict[str, Any] = {"spec": {"restartPolicy": str, "containers": [CONTAINER]}}
CLUSTER: dict[str, Any] = {
    "rayVersion": str,
    "enableInTreeAutoscaling": bool,
    "headGroupSpec": {"rayStartParams": dict, "template": POD},
    "workerGroupSpecs": [
        {
            "groupName": str,
            "replicas": int,
            "minReplicas": int,
            "maxReplicas": int,
            "rayStartParams": dict,
            "template": POD,
        }
    ],
}
TOP = {"apiVersion": str, "kind": str, "metadata": {"name": str}}
JOB = {
    "entrypoint": str,
    "shutdownAfterJobFinishes": bool,
    "ttlSecondsAfterFinished": int,
    "backoffLimit": int,
    "rayClusterSpec": CLUSTER,
}
CRON = {
    "schedule": str,
    "concurrencyPolicy": str,
    "jobTemplate": {"spec": {"backoffLimit": int, "template": POD}},
}
MANIFESTS = {
    "deploy/kuberay/raycluster.yaml": {**TOP, "spec": CLUSTER},
    "deploy/kuberay/rayjob.yaml": {**TOP, "spec": JOB},
    "deploy/kubernetes/cronjob.yaml": {**TOP, "spec": CRON},
}


def misfits(value: Any, fits: Any, where: str = "") -> Iterator[str]:
    """Keys that the list has not, and values of another type."""
    if isinstance(fits, dict):
        if not isinstance(value, dict):
            yield f"{where}: {value!r}"
            return
        for key, inner in value.items():
            if key not in fits:
                yield f"{where}.{key}: unknown"
            else:
                yield from misfits(inner, fits[key], f"{where}.{key}")
    elif isinstance(fits, list):
        for item in value:
            yield from misfits(item, fits[0], f"{where}[]")
    elif not isinstance(value, fits):
        yield f"{where}: {value!r} is no {fits.__name__}"


@pytest.mark.parametrize("path", LAUNCHERS)
def test_a_launcher_file_is_one_that_ray_accepts(path: str) -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    told = yaml.safe_load((ROOT / path).read_text())
    validate_config(prepare_config(told))
    commands = [c for kind in ("head_start_ray_commands", "worker_start_ray_commands") for c in told[kind]]
    assert all("RAY_AUTH_MODE=token" in c for c in commands if "ray start" in c)


def test_a_misspelt_launcher_key_is_refused_by_that_validator() -> None:
    import click
    from ray.autoscaler._private.util import prepare_config, validate_config

    told = yaml.safe_load((ROOT / "cluster.yaml").read_text())
    told["provider"]["workers_ips"] = told["provider"].pop("worker_ips")
    with pytest.raises((click.ClickException, KeyError, ValueError)):
        validate_config(prepare_config(told))


@pytest.mark.parametrize("path", MANIFESTS)
def test_a_manifest_uses_known_fields_only(path: str) -> None:
    told = yaml.safe_load((ROOT / path).read_text())
    assert list(misfits(told, MANIFESTS[path])) == []


def test_a_misspelt_manifest_key_fails() -> None:
    told = yaml.safe_load((ROOT / "deploy/kuberay/rayjob.yaml").read_text())
    told["spec"]["shutDownAfterJobFinishes"] = told["spec"].pop("shutdownAfterJobFinishes")
    assert list(misfits(told, MANIFESTS["deploy/kuberay/rayjob.yaml"])) == [
        ".spec.shutDownAfterJobFinishes: unknown"
    ]


@pytest.mark.parametrize("path", MANIFESTS)
def test_every_container_of_a_cluster_has_the_token(path: str) -> None:
    def containers(node: Any) -> Iterator[dict[str, Any]]:
        if isinstance(node, dict):
            for key, value in node.items():
                if key == "containers":
                    yield from value
                else:
                    yield from containers(value)
        elif isinstance(node, list):
            for value in node:
                yield from containers(value)

    for container in containers(yaml.safe_load((ROOT / path).read_text())):
        told = {e["name"]: e for e in container["env"]}
        assert told["RAY_AUTH_MODE"]["value"] == "token"
        assert "valueFrom" in told["RAY_AUTH_TOKEN"], "a token in the file itself would be everybody's"


def test_the_slurm_script_parses_and_passes_settings_on() -> None:
    script = ROOT / "deploy" / "slurm.sh"
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    assert '"$@"' in script.read_text() and "symmetric-run" in script.read_text()


def test_the_timer_starts_the_service_and_verdicts_are_no_failures() -> None:
    from configparser import ConfigParser

    def unit(name: str) -> ConfigParser:
        parsed = ConfigParser(strict=False, interpolation=None)
        parsed.optionxform = str  # type: ignore[assignment, method-assign]
        parsed.read_string((ROOT / "deploy" / "systemd" / name).read_text())
        return parsed

    service, timer = unit("speechfarm-retest.service"), unit("speechfarm-retest.timer")
    assert service["Service"]["SuccessExitStatus"].split() == ["4", "5", "6"]
    assert "jobs/retest.py retest=cascade_folder" in service["Service"]["ExecStart"]
    assert timer["Timer"]["Persistent"] == "true"


def test_the_image_holds_every_folder_that_the_project_has() -> None:
    copied = {
        line.split()[1]
        for line in (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ")
    }
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    assert packages | {"conf", "data", "scripts"} <= copied


def test_a_named_experiment_or_retest_in_them_exists() -> None:
    for path in Path(ROOT / "deploy").rglob("*"):
        if path.is_file() and "retest=" in (text := path.read_text()):
            name = text.split("retest=")[1].split()[0].strip(",\"'")
            assert (ROOT / "conf" / "retest" / f"{name}.yaml").exists(), path
