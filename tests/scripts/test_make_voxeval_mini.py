"""The builder of data/voxeval_mini, with a buzzer in place of the synthesiser: no weights are needed."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml

import audio
from benchmarks.voxeval import Math, Regular
from farm.types import Waveform, Wording

ROOT = Path(__file__).parents[2]
MINI = ROOT / "data" / "voxeval_mini"


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("make_voxeval_mini")


@pytest.fixture
def recipe() -> dict[str, Any]:
    return yaml.safe_load((MINI / "recipe.yaml").read_text(encoding="utf-8"))


def buzz(text: str) -> Waveform:
    time_s = np.arange(round(len(text) / 25 * 22_050)) / 22_050
    return Waveform(samples=0.1 * np.sin(2 * np.pi * 300 * time_s).astype(np.float32), sample_rate_hz=22_050)


def test_the_shipped_set_is_what_the_recipe_says(builder: ModuleType, recipe: dict[str, Any]) -> None:
    for subject, parts in recipe.items():
        shipped = (MINI / "test" / f"{subject}_4o.csv").read_text(encoding="utf-8")
        assert shipped == builder.csv_text(parts["questions"])
    files = {file.path for voice in voices() for file in builder.spoken(recipe, voice)}
    assert files == {path.relative_to(MINI).as_posix() for path in MINI.rglob("*.mp3")}


def voices() -> list[str]:
    return [folder.name for folder in (MINI / "test").iterdir() if folder.is_dir()]


def test_a_set_is_made_again_byte_for_byte_and_can_be_asked(
    builder: ModuleType, recipe: dict[str, Any], tmp_path: Path
) -> None:
    for name in ("one", "two"):
        builder.make(recipe, {"buzz": buzz}, tmp_path / name)
    for path in (tmp_path / "one").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
    task = Regular(path=str(tmp_path / "one"), setting=["buzz"])
    task.varied({}, Wording())
    assert len(list(task.items())) == 24
    Math(path=str(tmp_path / "one"), setting=["buzz"]).varied({"form": "cot", "shots": "5"}, Wording())


def test_speech_is_stored_at_its_own_rate_and_one_level(builder: ModuleType) -> None:
    heard = audio.decode(builder.mp3(buzz("x" * 100)), "buzz")
    assert heard.sample_rate_hz == 22_050
    level = 20 * np.log10(audio.active_rms(heard.samples, heard.sample_rate_hz))
    assert level == pytest.approx(builder.SPEECH_DBFS, abs=0.5)


def test_mathematics_is_read_out_in_words(builder: ModuleType, recipe: dict[str, Any]) -> None:
    row = recipe["elementary_mathematics"]["questions"][2]
    assert builder.question(row) == (
        "What is three quarters of twenty? Please choose the answer from options A, B, C, and D. "
        "Option A: fifteen. Option B: twelve. Option C: ten. Option D: five."
    )
