"""The options in conf/condition: each is packaged under its own name, can be built, and is part of `all`."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from audio.conditions import apply, build
from farm.types import Condition
from jobs.config import register_resolvers
from tests.audio.signals import vowels

register_resolvers()
FOLDER = Path(__file__).parents[2] / "conf/condition"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "all")


def composed(choice: str) -> dict[str, dict[str, list[dict[str, object]]]]:
    with initialize_config_dir(str(FOLDER.parent), version_base="1.3"):
        made = OmegaConf.to_container(compose(overrides=[f"+condition={choice}"]), resolve=True)
    assert isinstance(made, dict)
    return made["conditions"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", NAMES)
def test_an_option_is_packaged_under_its_own_name_and_can_be_heard(name: str) -> None:
    found = composed(f"[{name}]")
    assert list(found) == [name]
    made = Condition(name=name, chain=tuple(found[name]["chain"]))
    assert all(step.version for step in build(made))
    heard, drawn = apply(made, vowels(), 1)
    assert heard.seconds > 1
    assert drawn["clipped_share"] == "0"


def test_all_is_every_option() -> None:
    assert sorted(composed("all")) == NAMES
    assert yaml.safe_load((FOLDER / "all.yaml").read_text())["defaults"][0] == "clean"


def test_importing_audio_is_light() -> None:
    heavy = ("scipy", "soundfile", "av", "soxr", "librosa", "audiomentations", "torch")
    code = f"import sys, audio; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
