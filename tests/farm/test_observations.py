"""What counts as an observation, and contrasts between cells and between items, by hand."""

from typing import Any

import pytest

from farm.observations import Seen, between_cells, between_items, grouped, levels, pairs_of_levels, seen
from farm.records import CellRecord, ScorerRecord
from farm.types import MetricSpec

RATE = MetricSpec(name="choice/accuracy", aggregate="rate", better="higher")
MEAN = MetricSpec(name="judge/c4", aggregate="mean", better="higher")
RATIO = MetricSpec(name="text/wer", aggregate="ratio", better="lower")
SPECS = (RATE, MEAN, RATIO)


def record(**changes: Any) -> CellRecord:
    scorer = ScorerRecord(name="s", version="1", weights="", needs="text", metrics=SPECS)
    whole: dict[str, Any] = dict(
        cell_id="c", sweep_id="w", run_name="", benchmark="b", task="b.t", model="m", checkpoint="0", prompt="p1",
        prompt_example="", condition="clean", condition_parameters={}, arm={}, adapter={}, speech_out=True,
        sample_rate_hz=None, repeats=1, planned=1, scorers=(scorer,),
    )  # fmt: skip
    return CellRecord(**{**whole, **changes})


def reply(trial: str, failure: str | None = None, **factors: str) -> dict[str, Any]:
    return {
        "trial_id": trial, "attempt": 1, "item_key": f"item-{trial}", "unit": trial, "pair_id": trial, "repeat": 0,
        "factors": list(factors.items()), "failure_kind": failure,
    }  # fmt: skip


def score(trial: str, spec: MetricSpec, status: str = "ok", **values: float) -> dict[str, Any]:
    return {
        "score_id": f"{trial}{spec.name}", "trial_id": trial, "attempt": 1, "scorer": "s", "scorer_version": "1",
        "name": spec.name, "status": status, "written_ns": 1, "value": values.get("value"),
        "numerator": values.get("numerator"), "denominator": values.get("denominator"),
    }  # fmt: skip


def counted(spec: MetricSpec, status: str = "ok", failure: str | None = None, **values: float) -> Any:
    rows = [s for s in seen(record(), [reply("a", failure)], [score("a", spec, status, **values)])]
    found = [(row.numerator, row.denominator) for row in rows if row.spec == spec]
    return found[0] if found else None


def test_a_rates_failed_and_unparsed_trials_are_not_correct() -> None:
    assert counted(RATE, value=1) == (1, 1)
    assert counted(RATE, "unparsed") == (0, 1)
    assert counted(RATE, "failed") == (0, 1)
    assert counted(RATE, "ok", "timeout", value=1) == (0, 1)


def test_what_was_not_judged_says_nothing() -> None:
    assert counted(RATE, "judge_error") is None
    assert counted(RATE, "not_applicable") is None
    assert counted(MEAN, "judge_error") is None
    assert counted(MEAN, "ok", "timeout", value=3) is None


def test_means_and_ratios_are_over_what_was_scored() -> None:
    assert counted(MEAN, value=3) == (3, 1)
    assert counted(RATIO, numerator=2, denominator=7) == (2, 7)
    assert counted(RATIO, "failed") is None


def rows(spec: MetricSpec, values: dict[str, float], **facets: Any) -> list[Seen]:
    factors = facets.pop("factors", {})
    return [
        Seen(
            record=record(**facets), spec=spec, trial_id=unit, item_key=f"{unit}/{factors}", unit=unit, pair_id=unit,
            repeat=0, factors=factors, numerator=value, denominator=1.0,
        )
        for unit, value in values.items()
    ]  # fmt: skip


def test_prompts_are_contrasted_on_the_same_question_of_the_same_model() -> None:
    mine = rows(MEAN, {"a": 1, "b": 2}, prompt="p1") + rows(MEAN, {"a": 2, "b": 4}, prompt="p3")
    other = rows(MEAN, {"c": 5}, prompt="p1", model="n")
    found = between_cells(mine + other, "prompt", "p1", "p3")
    assert (found.difference, found.units, found.unpaired) == (1.5, 2, 1)
    assert (found.first, found.second, found.metric) == ("p1", "p3", "judge/c4")


def test_arms_are_contrasted_with_the_default_arm() -> None:
    both = rows(MEAN, {"a": 1, "b": 1}) + rows(MEAN, {"a": 3, "b": 2}, arm={"cue": "oracle"})
    assert between_cells(both, "arm.cue", "", "oracle").difference == 1.5


def test_voices_of_people_and_machines_are_contrasted_on_the_same_script() -> None:
    human = rows(MEAN, {"a": 1, "b": 3}, factors={"voice_source": "human", "voice_style": "target"})
    made = rows(MEAN, {"a": 2, "c": 3}, factors={"voice_source": "synthetic", "voice_style": "target"})
    odd = rows(MEAN, {"a": 9}, factors={"voice_source": "synthetic", "voice_style": "neutral"})
    found = between_items(human + made + odd, "voice_source", "synthetic", "human")
    assert (found.difference, found.units) == (-1, 1)


def test_two_metrics_are_never_contrasted_together() -> None:
    with pytest.raises(AssertionError, match="one metric"):
        between_cells(rows(MEAN, {"a": 1}) + rows(RATE, {"a": 1}), "prompt", "p1", "p3")


def test_groups_and_levels_are_in_order() -> None:
    both = rows(MEAN, {"a": 1}, prompt="p3") + rows(MEAN, {"a": 1}, prompt="p1")
    assert levels(both, "prompt") == ["p1", "p3"] and pairs_of_levels(both, "prompt") == [("p1", "p3")]
    assert list(grouped(both, "metric", "prompt")) == [("judge/c4", "p1"), ("judge/c4", "p3")]
