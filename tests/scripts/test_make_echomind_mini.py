"""The builder of data/echomind_mini, with a buzzer in place of the synthesiser: no weights are needed."""

import importlib
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml

import audio
from benchmarks.echomind import Conversation

ROOT = Path(__file__).parents[2]
MINI = ROOT / "data" / "echomind_mini"
RATE_HZ = 24_000


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("make_echomind_mini")


@pytest.fixture
def sounds(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("background_sounds")


@pytest.fixture
def recipe() -> list[dict[str, object]]:
    return yaml.safe_load((MINI / "recipe.yaml").read_text(encoding="utf-8"))


def buzz(text: str, speaker: str, speed: float) -> np.ndarray:
    """Something as long as the text, at a pitch of the speaker's own."""
    time_s = np.arange(round(len(text) / 25 / speed * RATE_HZ)) / RATE_HZ
    return 0.1 * np.sign(np.sin(2 * np.pi * (100 + sum(map(ord, speaker)) % 150) * time_s))


def test_the_shipped_index_is_what_the_recipe_says(
    builder: ModuleType, recipe: list[dict[str, object]]
) -> None:
    shipped = json.loads((MINI / "data_synthesis" / "script_info_synthesis.json").read_text(encoding="utf-8"))
    assert shipped == [
        builder.record(script, f"id_{number}") for number, script in enumerate(recipe, start=1)
    ]


def test_a_set_is_made_again_byte_for_byte_and_can_be_read(
    builder: ModuleType, recipe: list[dict[str, object]], tmp_path: Path
) -> None:
    for folder in ("one", "two"):
        builder.make(recipe, buzz, tmp_path / folder)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.*"))
    assert len(files) == 37
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    made = list(Conversation(path=str(tmp_path / "one"), voice=("target", "alternative", "neutral")).items())
    assert len(made) == 34 and all(item.seconds > 1 for item in made)


def test_the_shipped_questions_are_what_the_recipe_says(
    builder: ModuleType, recipe: list[dict[str, object]], tmp_path: Path
) -> None:
    builder.write_questions(recipe, tmp_path)
    for level in ("understanding", "reasoning"):
        file = f"data_synthesis/MCQ/{level}.json"
        assert (tmp_path / file).read_bytes() == (MINI / file).read_bytes()


def test_one_option_of_a_question_is_true_and_no_two_are_alike(recipe: list[dict[str, object]]) -> None:
    names = importlib.import_module("echomind_mini_questions")
    asked = [
        q for script in recipe for voice in ("target", "alternative") for q in names._by_rule(script, voice)
    ]
    for question in asked:
        assert len(set(question.options)) == len(question.options) >= 2
        if question.type == "coarse_grained":
            assert not set(question.options[1:]) - set(names.NEVER_TRUE)
        sounds = {label for label, text in names.TRUE_OF.items() if text in question.options}
        assert all(len(sounds & alike) < 2 for alike in names.ALIKE)


def test_fast_is_shorter_and_slow_is_longer(builder: ModuleType, recipe: list[dict[str, object]]) -> None:
    script = next(script for script in recipe if script["spoken_info"] == "fast speaking pace")
    fast, slow, plain = (
        len(builder.recording(script, voice, buzz, [], seed=1))
        for voice in ("target", "alternative", "neutral")
    )
    assert fast < plain < slow


@pytest.mark.parametrize("snr_db", [10, 20])
def test_a_sound_is_mixed_at_the_stated_ratio(builder: ModuleType, snr_db: float) -> None:
    script = {"text": "x" * 100, "speaker": "a", "target": {"sound": "rain", "snr_db": snr_db}}
    plain = {**script, "target": {}}
    mixed = builder.recording(script, "target", buzz, [], seed=1)
    speech = builder.recording(plain, "target", buzz, [], seed=1)
    pause = round((builder.SOUND_PAUSE_S - builder.PAUSE_S) * RATE_HZ)
    noise = mixed.copy()
    noise[pause : len(mixed) - pause] -= speech
    level = [audio.active_rms(part.astype(np.float32), RATE_HZ) for part in (speech, noise)]
    assert 20 * np.log10(level[0] / level[1]) == pytest.approx(snr_db, abs=0.3)


@pytest.mark.parametrize("name", ["rain", "wind", "thunderstorm", "waves", "alarm", "ringtone", "chatter"])
def test_sounds_last_as_long_as_asked_and_follow_their_generator(sounds: ModuleType, name: str) -> None:
    def made(seconds: float) -> np.ndarray:
        rng = np.random.default_rng(3)
        voices = [buzz("x" * 40, "a", 1.0), buzz("x" * 60, "b", 1.0)]
        return (
            sounds.chatter(seconds, rng, voices) if name == "chatter" else sounds.SOUNDS[name](seconds, rng)
        )

    for seconds in (0.6, 2.5):
        assert len(made(seconds)) == round(seconds * RATE_HZ)
        assert np.isfinite(made(seconds)).all()
    assert (made(2.5) == made(2.5)).all()
