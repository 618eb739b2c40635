"""EmoAlign with a stand-in recogniser: emotion2vec's weights are in no package."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farm.types import Item, Reply, Score, Stimulus, Waveform
from scoring.emotion import EmoAlign
from speech.emotion import likeliest


def item(emotion: str | None) -> Item:
    gold = {"emotion": emotion} if emotion else {}
    return Item(
        key="1", benchmark="echomind", task="echomind.conversation", unit="1", pair_id="1",
        stimulus=Stimulus(turns=()), gold=gold,
    )  # fmt: skip


def spoken(level: float) -> Reply:
    return Reply(text="x", speech=Waveform(samples=np.full(100, level, np.float32), sample_rate_hz=16_000))


@pytest.fixture
def scorer(tmp_path: Path) -> EmoAlign:
    (tmp_path / "weights").write_bytes(b"w")
    return EmoAlign(recogniser=settings(tmp_path / "weights"))


def settings(path: Path) -> dict[str, Any]:
    return {
        "_target_": "tests.scoring.standins.Level",
        "checkpoint": {"path": str(path), "made_by": "fetch it"},
    }


def only(scores: list[list[Score]]) -> list[tuple[str, float | None, str | None]]:
    return [(s.status, s.value, s.label) for (s,) in scores]


def test_a_reply_is_aligned_where_it_sounds_as_the_reference_would(scorer: EmoAlign) -> None:
    heard = [(item("happy"), spoken(0.9)), (item("sad"), spoken(0.9)), (item("Sad"), spoken(0.1))]
    assert only(scorer.score(heard)) == [("ok", 1, "happy"), ("ok", 0, "happy"), ("ok", 1, "sad")]


def test_what_cannot_be_compared_has_a_status_of_its_own(scorer: EmoAlign) -> None:
    heard = [
        (item("happy"), spoken(0.001)),
        (item(None), spoken(0.9)),
        (item("happy"), Reply(text="x")),
        (item("happy"), spoken(float("nan"))),
    ]
    assert [s for s, *_ in only(scorer.score(heard))] == [
        "unparsed",
        "unavailable",
        "not_applicable",
        "failed",
    ]


def test_without_weights_it_is_unavailable_with_what_brings_them(tmp_path: Path) -> None:
    scorer = EmoAlign(recogniser=settings(tmp_path / "gone"))
    ((score,),) = scorer.score([(item("happy"), spoken(0.9))])
    assert score.status == "unavailable" and "fetch it" in score.reason
    assert EmoAlign.weights_fingerprint({"recogniser": settings(tmp_path / "gone")}) == ""


def test_bilingual_labels_and_the_unknown_one_are_understood() -> None:
    found = likeliest({"labels": ["生气/angry", "开心/happy", "<unk>"], "scores": [0.1, 0.8, 0.1]})
    assert getattr(found, "label", None) == "happy"
    assert getattr(likeliest({"labels": ["<unk>", "sad"], "scores": [0.9, 0.1]}), "label", None) == "unknown"
    assert "none of angry" in getattr(likeliest({"labels": ["bored"], "scores": [1.0]}), "message", "")
