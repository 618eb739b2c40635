"""Spoken answers: the letter in a transcript, the published string match, written answers beside them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import audio
from farm.types import Failure, Item, Reply, Score, Stimulus, Waveform
from scoring.transcript import SpokenChoice, WrittenChoice, strict_match
from speech.types import Transcript

ROOT = Path(__file__).parents[2]
GOLD = {"answer": "B", "options": {"A": "Asia", "B": "Africa", "C": "Europe", "D": "South America"}}
SPEECH = Waveform(samples=np.full(16_000, 0.1, np.float32), sample_rate_hz=16_000)


class Dictated:
    """Stands in for a recogniser: hears what the test says."""

    version = "1"
    heard: Transcript | Failure = Transcript(text="")

    def __init__(self, device: str) -> None:
        self.device = device

    def transcribe(self, waveforms: Sequence[Waveform]) -> list[Transcript | Failure]:
        return [self.heard for _ in waveforms]


def item(gold: dict[str, Any] = GOLD) -> Item:
    return Item(
        key="k", benchmark="voxeval", task="t", unit="u", pair_id="u", stimulus=Stimulus(turns=()), gold=gold
    )


def spoken(
    heard: str | Failure,
    monkeypatch: pytest.MonkeyPatch,
    reply: Reply | None = None,
    gold: dict[str, Any] = GOLD,
) -> dict[str, Score]:
    monkeypatch.setattr(Dictated, "heard", heard if isinstance(heard, Failure) else Transcript(text=heard))
    scorer = SpokenChoice(recogniser={"_target_": f"{__name__}.Dictated"})
    (scores,) = scorer.score([(item(gold), reply or Reply(speech=SPEECH))])
    assert sorted(score.name for score in scores) == sorted(SpokenChoice.names)
    return {score.name.removeprefix("voxeval/"): score for score in scores}


@pytest.mark.parametrize(
    ("said", "letter", "strict"),
    [
        ("The correct answer is B.", "B", 1.0),
        ("The correct answer is B. Africa.", "B", 1.0),
        ("Option D, South America.", "D", 0.0),
        ("the correct answer is be", "B", 0.0),
        ("Africa", "B", 0.0),
        ("The correct answer is B42.", "B", 0.0),
        ("Thank you for watching.", None, 0.0),
    ],
)
def test_letters_are_read_from_what_was_heard(
    said: str, letter: str | None, strict: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = spoken(said, monkeypatch)
    assert found["accuracy_speech"].label == letter
    assert found["accuracy_speech"].value == (None if letter is None else float(letter == "B"))
    assert found["accuracy_strict"].value == strict
    assert found["accuracy_strict"].label == said
    assert found["unparsed_speech"].value == float(letter is None)


def test_of_a_chain_of_thought_the_final_answer_counts_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "It could be option A or option D. Kenya has a coast on the Indian Ocean. So the answer is B."
    found = spoken(said, monkeypatch)
    assert found["accuracy_speech_final"].label == "B"
    assert found["accuracy_strict"].value == 0.0
    undecided = spoken("It could be option A or option D.", monkeypatch)
    assert undecided["accuracy_speech_final"].status == "unparsed"


def test_no_speech_is_an_unparsed_answer_and_no_gold_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spoken("B", monkeypatch, Reply(text="B"))["accuracy_speech"].status == "unparsed"
    assert {s.status for s in spoken("B", monkeypatch, gold={}).values()} == {"unavailable"}


def test_failures_are_said_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Reply(failure=Failure(kind="timeout", message="hung"))
    assert {s.status for s in spoken("B", monkeypatch, failed).values()} == {"failed"}
    broken = Failure(kind="input_error", message="a waveform without samples")
    assert {s.reason for s in spoken(broken, monkeypatch).values()} == {
        "input_error: a waveform without samples"
    }


def test_without_weights_every_score_is_unavailable_and_says_why() -> None:
    checkpoint = {"path": "/nowhere/whisper", "made_by": "python fetch.py"}
    recogniser = {"_target_": "speech.whisper.FasterWhisper", "checkpoint": checkpoint}
    assert SpokenChoice.weights_fingerprint({"recogniser": recogniser}) == ""
    (scores,) = SpokenChoice(recogniser=recogniser).score([(item(), Reply(speech=SPEECH))])
    assert {s.status for s in scores} == {"unavailable"}
    assert "python fetch.py" in scores[0].reason


def test_the_text_is_judged_beside_the_speech() -> None:
    (scores,) = WrittenChoice().score([(item(), Reply(text="The correct answer is B"))])
    assert [(s.name, s.value) for s in scores] == [
        ("voxeval/accuracy_text", 1.0),
        ("voxeval/accuracy_text_final", 1.0),
        ("voxeval/unparsed_text", 0.0),
    ]
    (empty,) = WrittenChoice().score([(item(), Reply(text=""))])
    assert [s.status for s in empty] == ["unparsed", "unparsed", "ok"]


def test_the_string_match_needs_the_right_letter_alone() -> None:
    assert strict_match("The correct answer is B.", "B", "ABCD")
    assert not strict_match("A better answer is B.", "B", "ABCD")
    assert not strict_match("The Correct answer", "C", "ABCD")


def test_real_speech_is_heard_and_silence_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = ROOT / "weights" / "whisper-tiny.en-ct2"
    if not weights.exists():
        pytest.skip("no demo weights; python scripts/fetch_demo_weights.py")
    recogniser = {
        "_target_": "speech.whisper.FasterWhisper",
        "checkpoint": {"path": str(weights)},
        "language": "en",
    }
    scorer = SpokenChoice(recogniser=recogniser)
    stem = ROOT / "data/voxeval_mini/test/joe/high_school_geography_4o/00000000_answer.mp3"
    silence = Waveform(samples=np.zeros(32_000, np.float32), sample_rate_hz=16_000)
    gold = {**GOLD, "options": {"A": "The Atlantic Ocean", "B": "The Indian Ocean", "C": "x", "D": "y"}}
    right, nothing = scorer.score(
        [(item(gold), Reply(speech=audio.load(stem))), (item(gold), Reply(speech=silence))]
    )
    assert right[0].value == 1.0
    assert [s.status for s in nothing[:2]] == ["unparsed", "unparsed"] and nothing[-1].label == ""
