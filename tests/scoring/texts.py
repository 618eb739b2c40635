"""Items with words and replies to hold against them."""

from collections.abc import Sequence
from typing import Any

from farm.types import Failure, Item, Reply, Score, Stimulus

WORDS = "I got my exam back, and Mr. Brown said it's twenty-one points."
REPLIES = (
    "I am so sorry to hear that.",
    "Oh no, do you want to talk about it?",
    "That must be hard for you.",
)


def item(**gold: Any) -> Item:
    have = {"transcript": WORDS, "references": list(REPLIES)} | gold
    return Item(
        key="k", benchmark="b", task="b.t", unit="u", pair_id="p", stimulus=Stimulus(turns=()), gold=have
    )


def scored(scorer: Any, *texts: str | None, **gold: Any) -> list[dict[str, Score]]:
    """Each reply's scores by name."""
    found = scorer.score([(item(**gold), Reply(text=text)) for text in texts])
    return [{score.name: score for score in scores} for scores in found]


def value(scorer: Any, text: str, name: str, **gold: Any) -> float:
    (scores,) = scored(scorer, text, **gold)
    found = scores[name].value
    assert found is not None, scores[name]
    return found


def check_what_cannot_be_scored(scorer: Any, names: Sequence[str], gold: str) -> None:
    """No text, no reply, no gold: one score for each name, without a value and with a reason."""
    failed = Reply(failure=Failure(kind="timeout", message="hung"))
    cases = [
        (item(), Reply()),
        (item(), failed),
        (item(**{gold: None}), Reply(text="Hi.")),
        (item(), Reply(text="Hi.")),
    ]
    found = scorer.score(cases)
    assert [{s.status for s in scores} for scores in found] == [
        {"not_applicable"},
        {"failed"},
        {"unavailable"},
        {"ok"},
    ]
    for scores in found:
        assert [s.name for s in scores] == list(names)
        assert all(s.value is None and s.reason for s in scores if s.status != "ok")
