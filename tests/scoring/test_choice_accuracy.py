"""Right, wrong, unparsed and not scored at all: python -m pytest tests/scoring/test_choice_accuracy.py."""

from typing import Any

from farm.types import Failure, Item, Reply, Score, Stimulus
from scoring.choice import ChoiceAccuracy

GOLD = {"answer": "B", "options": {"A": "The speaker is male.", "B": "The speaker is female."}}


def scored(reply: Reply, gold: dict[str, Any] = GOLD) -> dict[str, Score]:
    item = Item(
        key="k", benchmark="b", task="b.t", unit="u", pair_id="p", stimulus=Stimulus(turns=()), gold=gold
    )
    (scores,) = ChoiceAccuracy().score([(item, reply)])
    assert tuple(score.name for score in scores) == ChoiceAccuracy.names
    return {score.name: score for score in scores}


def values(reply: str) -> dict[str, float | None]:
    return {name: score.value for name, score in scored(Reply(text=reply)).items()}


def test_right_and_wrong_letters() -> None:
    right, wrong = values("The answer is: [B]"), values("A")
    assert right == {"choice/accuracy": 1.0, "choice/chance": 0.5, "choice/unparsed": 0.0}
    assert wrong == {"choice/accuracy": 0.0, "choice/chance": 0.5, "choice/unparsed": 0.0}
    assert scored(Reply(text="A"))["choice/accuracy"].label == "A"


def test_the_options_words_are_an_answer() -> None:
    assert values("The speaker is female.")["choice/accuracy"] == 1.0


def test_an_answer_that_cannot_be_read_has_no_value_but_is_counted() -> None:
    found = scored(Reply(text="[A/B/C/D]"))
    assert found["choice/accuracy"].status == "unparsed"
    assert found["choice/accuracy"].value is None and found["choice/accuracy"].reason
    assert found["choice/unparsed"].value == 1.0


def test_an_empty_reply_is_unparsed() -> None:
    assert scored(Reply(text=""))["choice/accuracy"].status == "unparsed"


def test_speech_alone_is_not_read_and_a_failure_is_no_answer() -> None:
    assert {s.status for s in scored(Reply()).values()} == {"not_applicable"}
    failed = Reply(failure=Failure(kind="timeout", message="hung"))
    assert {s.status for s in scored(failed).values()} == {"failed"}


def test_a_question_without_gold_is_not_scored() -> None:
    assert {s.status for s in scored(Reply(text="B"), {}).values()} == {"unavailable"}
