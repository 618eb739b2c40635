"""Speech that says its text, and speech that does not: the demo's voice heard by the demo's recogniser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farm.types import Item, Reply, Score, Stimulus, Waveform
from jobs.config import ROOT
from scoring.spoken import Spoken, active, cut_off

WEIGHTS = ROOT / "weights"
ITEM = Item(
    key="1", benchmark="b", task="b.t", unit="1", pair_id="1", stimulus=Stimulus(turns=())
)  # fmt: skip
SAID = "The train to the city leaves at nine o'clock in the morning."


@pytest.fixture(scope="module")
def scorer() -> Spoken:
    needed = ("whisper-tiny.en-ct2", "piper-joe", "whisper-normalizer")
    if not all((WEIGHTS / name).exists() for name in needed):
        pytest.skip("no demo weights; python scripts/fetch_demo_weights.py")
    return Spoken(
        recogniser={
            "_target_": "speech.whisper.FasterWhisper",
            "checkpoint": {"path": str(WEIGHTS / "whisper-tiny.en-ct2")},
            "language": "en",
        },
        spellings={"path": str(WEIGHTS / "whisper-normalizer" / "english.json")},
    )


@pytest.fixture(scope="module")
def speech(scorer: Spoken) -> Waveform:
    from speech.piper import Piper

    (spoken,) = Piper(checkpoint={"path": str(WEIGHTS / "piper-joe")}).speak([SAID])
    assert isinstance(spoken, Waveform)
    return spoken


def scored(scorer: Spoken, reply: Reply) -> dict[str, Score]:
    return {score.name: score for score in scorer.score([(ITEM, reply)])[0]}


def test_speech_that_says_its_text_has_no_word_errors(scorer: Spoken, speech: Waveform) -> None:
    found = scored(scorer, Reply(text=SAID, speech=speech))
    assert found["speech/text_wer"].numerator == 0
    assert 1.5 < (found["speech/words_per_s"].value or 0) < 5
    assert (found["speech/silence_share"].value or 0) < 0.4
    assert found["speech/cut_off"].value == 0


def test_speech_that_says_something_else_has_them(scorer: Spoken, speech: Waveform) -> None:
    found = scored(scorer, Reply(text="I would rather stay at home and read a book.", speech=speech))
    assert (found["speech/text_wer"].numerator or 0) / (found["speech/text_wer"].denominator or 1) > 0.7


def test_numbers_and_thoughts_are_no_errors(scorer: Spoken, speech: Waveform) -> None:
    text = f"<think>which train?</think>{SAID.replace(chr(110) + 'ine', '9')}"
    assert (scored(scorer, Reply(text=text, speech=speech))["speech/text_wer"].numerator or 0) <= 1


def test_silence_says_nothing_and_misses_every_word(scorer: Spoken) -> None:
    silent = Waveform(samples=np.zeros(16_000, np.float32), sample_rate_hz=16_000)
    found = scored(scorer, Reply(text="tea please now", speech=silent))
    assert found["speech/text_wer"].numerator == found["speech/text_wer"].denominator == 3
    assert found["speech/silence_share"].value == 1
    assert found["speech/words_per_s"].status == found["speech/cut_off"].status == "not_applicable"


def test_what_cannot_be_heard_or_read_is_not_applicable(scorer: Spoken, speech: Waveform) -> None:
    assert {s.status for s in scored(scorer, Reply(text="x")).values()} == {"not_applicable"}
    assert scored(scorer, Reply(speech=speech))["speech/text_wer"].status == "not_applicable"


def test_without_weights_it_is_unavailable_with_the_command(tmp_path: Path) -> None:
    gone: dict[str, Any] = {"path": str(tmp_path / "gone"), "made_by": "fetch it"}
    scorer = Spoken(
        recogniser={"_target_": "speech.whisper.FasterWhisper", "checkpoint": gone}, spellings=gone
    )
    found = scored(scorer, Reply(text="x"))
    assert {s.status for s in found.values()} == {"unavailable"} and "fetch it" in found[
        "speech/cut_off"
    ].reason


def test_a_reply_that_breaks_off_is_loud_at_its_end() -> None:
    tone = 0.3 * np.sin(np.arange(16_000, dtype=np.float32) * 0.1)
    faded = tone * np.linspace(1, 0, 16_000, dtype=np.float32)
    assert cut_off(Waveform(samples=tone, sample_rate_hz=16_000))
    assert not cut_off(Waveform(samples=faded, sample_rate_hz=16_000))
    padded = np.concatenate([np.zeros(8_000, np.float32), tone, np.zeros(8_000, np.float32)])
    assert active(Waveform(samples=padded, sample_rate_hz=16_000)).mean() == pytest.approx(0.5, abs=0.03)
