"""The item set that ships with the repository."""

from pathlib import Path

import pytest

import audio
from benchmarks.echomind import Conversation, Reasoning, Transcription, Understanding
from farm import ids
from farm.types import AudioSegment, Item, Prompt

ROOT = Path(__file__).parents[2] / "data" / "echomind_mini"


@pytest.fixture(scope="module")
def items() -> list[Item]:
    return list(Conversation(path=str(ROOT), voice=("target", "alternative", "neutral")).items())


def test_twelve_scripts_in_all_their_voices(items: list[Item]) -> None:
    styles = [item.factors["voice_style"] for item in items]
    assert len({item.unit for item in items}) == 12
    assert (styles.count("target"), styles.count("alternative"), styles.count("neutral")) == (12, 12, 10)


def test_many_attributes_of_every_coarse_dimension_and_early(items: list[Item]) -> None:
    assert len({item.factors["attribute"] for item in items}) >= 8
    first_four = [item for item in items if item.factors["voice_style"] == "target"][:4]
    assert {item.factors["coarse_dimension"] for item in first_four} == {
        "speaker",
        "paralinguistic",
        "environment",
    }


def test_speech_is_a_few_seconds_long_at_a_natural_level(items: list[Item]) -> None:
    for item in items:
        ((segment,),) = item.stimulus.turns
        assert isinstance(segment, AudioSegment)
        waveform = audio.load(segment.path)
        assert segment.seconds == waveform.seconds
        assert 1.5 < waveform.seconds < 8
        assert 0.01 < audio.active_rms(waveform.samples, waveform.sample_rate_hz) < 0.3
        assert abs(waveform.samples).max() < 0.99


def test_files_differ_in_rate_channels_and_headers_as_real_ones_do() -> None:
    heads = [path.read_bytes()[:44] for path in ROOT.rglob("*.wav")]
    assert {int.from_bytes(head[24:28], "little") for head in heads} == {16_000, 24_000, 44_100, 48_000}
    assert {int.from_bytes(head[22:24], "little") for head in heads} == {1, 2}
    assert any(head[4:8] == b"\xff" * 4 for head in heads)


def test_every_recording_has_words_and_replies_that_fit(items: list[Item]) -> None:
    for item in items:
        assert 6 <= len(item.gold["transcript"].split()) <= 20
        assert len(item.gold["references"]) >= 2


def test_every_recording_has_a_transcript_and_questions_of_many_types() -> None:
    voices = ("target", "alternative", "neutral")
    assert len(list(Transcription(path=str(ROOT), voice=voices).items())) == 34
    asked = [
        item for level in (Understanding, Reasoning) for item in level(path=str(ROOT), voice=voices).items()
    ]
    assert len(asked) == 94
    assert {len(item.gold["options"]) for item in asked} == {2, 3, 4}
    assert len({item.factors["question_type"] for item in asked}) == 11
    answers = [item.gold["answer"] for item in asked]
    assert max(answers.count(letter) for letter in "ABCD") < 40


def test_the_set_is_small() -> None:
    assert sum(path.stat().st_size for path in ROOT.rglob("*") if path.is_file()) < 6_000_000


def test_trial_identities_of_the_shipped_set_do_not_drift(items: list[Item]) -> None:
    """Changes with the recordings and the prompts, and then every stored demo reply is asked for again."""
    task = Conversation(path=str(ROOT))
    prompt = Prompt(name="p3", strength="enhanced")
    digests = [ids.request_digest(task.request(item, prompt)).hex() for item in items]
    assert ids.digest(sorted(digests))[:16] == "0fc7e75b1d54f3b3"
