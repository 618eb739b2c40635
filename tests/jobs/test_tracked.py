"""Running means agree with what the cell's metrics will be."""

from typing import Any

from jobs.tracked import Running


def row(name: str, status: str = "ok", **fields: Any) -> dict[str, Any]:
    return {"name": name, "status": status, "value": None, "numerator": None, "denominator": None, **fields}


def means(*rows: dict[str, Any]) -> dict[str, float]:
    running = Running()
    for each in rows:
        running.add(each)
    return {name: value for name, value in running.means().items() if not name.startswith("progress/")}


def test_an_unparsed_answer_is_a_wrong_one() -> None:
    assert means(row("choice/accuracy", value=1.0), row("choice/accuracy", "unparsed")) == {
        "choice/accuracy": 0.5
    }


def test_a_ratio_divides_sums() -> None:
    rows = row("text/wer", numerator=1.0, denominator=1.0), row("text/wer", numerator=0.0, denominator=9.0)
    assert means(*rows) == {"text/wer": 0.1}


def test_what_could_not_be_scored_is_left_out() -> None:
    assert means(row("quality/utmos", "unavailable"), row("quality/utmos", value=3.0)) == {
        "quality/utmos": 3.0
    }
    assert means(row("text/wer", numerator=0.0, denominator=0.0)) == {}
