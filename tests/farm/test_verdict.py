"""Verdicts by hand, and the promises that the statistics are held to, by simulation."""

import numpy as np
import pytest

from farm.contrasts import Contrast, Observation, contrast
from farm.verdict import (
    EXIT_STATUS,
    Compared,
    Spread,
    Verdict,
    drifted,
    mcnemar,
    overall,
    power,
    units_for_significance,
    units_needed,
    verdicts,
    wrongs,
)


def compared(
    baseline: list[float],
    candidate: list[float],
    *,
    better: str = "higher",
    margin: float = 0.1,
    coverage: float = 1.0,
) -> Compared:
    sides = [
        [Observation(pair=n, unit=f"u{n}", numerator=value) for n, value in enumerate(side)]
        for side in (baseline, candidate)
    ]
    return Compared(
        cell="c",
        metric="m",
        better=better,
        margin=margin,
        contrast=contrast("m", ("b", "c"), *sides),
        coverage=coverage,  # type: ignore[arg-type]
    )


def kind(c: Compared) -> str:
    return verdicts([c])[0].kind


STILL = [3.0 + 0.1 * (n % 3) for n in range(12)]


def test_the_whole_interval_beyond_the_margin_is_worse_or_better() -> None:
    down, up = [v - 0.5 for v in STILL], [v + 0.5 for v in STILL]
    assert kind(compared(STILL, down)) == "worse"
    assert kind(compared(STILL, up)) == "better"
    assert kind(compared(STILL, up, better="lower")) == "worse"
    assert kind(compared(STILL, down, better="lower")) == "better"


def test_the_whole_interval_within_the_margin_is_no_difference() -> None:
    near = [v + 0.05 * (-1) ** n for n, v in enumerate(STILL)]
    assert kind(compared(STILL, near)) == "no difference"
    assert kind(compared(STILL, STILL)) == "no difference"


def test_an_interval_that_crosses_the_margin_is_inconclusive() -> None:
    torn = [v + (0.9 if n % 2 else -0.8) for n, v in enumerate(STILL)]
    (verdict,) = verdicts([compared(STILL, torn)])
    assert verdict.kind == "inconclusive" and "crosses the margin" in verdict.reason


def test_too_few_units_say_how_many_would_do() -> None:
    (verdict,) = verdicts([compared(STILL[:4], [v - 2 for v in STILL[:4]])])
    assert verdict.kind == "inconclusive" and "6 would" in verdict.reason
    assert units_for_significance(1) == 6 and 2 / 2**6 <= 0.05 < 2 / 2**5
    assert verdicts([compared([3.0], [1.0])])[0].kind == "inconclusive"


def test_low_coverage_allows_no_verdict_but_worse() -> None:
    assert kind(compared(STILL, [v + 0.5 for v in STILL], coverage=0.9)) == "inconclusive"
    assert kind(compared(STILL, STILL, coverage=0.9)) == "inconclusive"
    assert kind(compared(STILL, [v - 0.5 for v in STILL], coverage=0.9)) == "worse"


def test_mcnemar_by_hand() -> None:
    pairs = [(False, True)] * 6 + [(True, False)] + [(False, False)] * 20
    assert mcnemar(pairs) == (6, 1, pytest.approx(2 * (1 + 7) / 2**7))
    assert mcnemar([(True, True), (False, False)]) == (0, 0, 1.0)


def test_new_failures_are_worse_by_themselves() -> None:
    assert wrongs("c", "health/failed", [(False, True)] * 8 + [(False, False)] * 4).kind == "worse"
    assert wrongs("c", "health/failed", [(True, False)] * 8 + [(False, False)] * 4).kind == "better"
    assert wrongs("c", "health/failed", [(False, True)] * 3 + [(False, False)] * 9).kind == "no difference"


def test_the_gravest_verdict_is_the_one_over_all() -> None:
    def said(*kinds: str) -> str:
        return overall([Verdict(cell="c", metric="m", kind=k, reason="") for k in kinds])  # type: ignore[arg-type]

    assert said("better", "worse", "environment changed") == "worse"
    assert said("no difference", "inconclusive", "environment changed") == "environment changed"
    assert said("no difference", "better") == "better"
    assert said() == "inconclusive"
    assert [EXIT_STATUS[k] for k in ("worse", "judge changed", "inconclusive", "better")] == [4, 6, 5, 0]  # type: ignore[index]


def test_a_canary_within_the_margin_says_nothing_and_beyond_it_the_environment_changed() -> None:
    def again(shift: float) -> Contrast:
        return compared(STILL, [v + shift for v in STILL]).contrast

    assert drifted("c", "m", again(0.0), 0.1, "environment changed") is None
    assert drifted("c", "m", again(0.05), 0.1, "environment changed") is None
    found = drifted("c", "m", again(0.4), 0.1, "environment changed")
    assert found is not None and found.kind == "environment changed"


# --- by simulation -------------------------------------------------------------------------------------------------


def test_78_null_cells_give_false_alarms_in_at_most_5_percent_of_retests() -> None:
    """Nothing changed, repeats noisy: 120 retests of 78 cells x 16 units, margin 0."""
    generator = np.random.default_rng(3)
    alarms = 0
    for _ in range(120):
        cells = []
        for _ in range(78):
            base = generator.normal(size=16)
            sides = base + generator.normal(scale=0.3, size=(2, 16))
            cells.append(compared(list(sides[0]), list(sides[1]), margin=0.0))
        alarms += any(v.kind in ("worse", "better") for v in verdicts(cells))
    assert alarms / 120 <= 0.05 + 3 * (0.05 * 0.95 / 120) ** 0.5


@pytest.mark.parametrize(("units", "repeats", "difference"), [(50, 5, 0.1), (200, 1, 0.1), (30, 3, 0.25)])
def test_power_is_as_planned_within_5_points(units: int, repeats: int, difference: float) -> None:
    spread = Spread(unit=0.25, repeat=0.4)
    generator = np.random.default_rng(5)
    found = 0
    for _ in range(300):
        shift = difference + generator.normal(scale=spread.unit, size=units)
        noise = generator.normal(scale=spread.repeat, size=(2, units, repeats)).mean(axis=2)
        c = compared([*noise[0]], [*(shift + noise[1])]).contrast
        found += c.p is not None and c.p < 0.05
    assert found / 300 == pytest.approx(power(spread, units, repeats, difference), abs=0.05 + 0.03)
    wanted = units_needed(spread, repeats, difference)
    assert power(spread, wanted, repeats, difference) >= 0.8 > power(spread, wanted - 1, repeats, difference)


def test_dropped_items_never_turn_a_worse_model_better() -> None:
    """The candidate fails on just the items where it is worst: means rise, the verdict does not."""
    generator = np.random.default_rng(9)
    for _ in range(40):
        base = generator.normal(3.0, 0.5, size=40)
        candidate = base - 0.3 + generator.normal(scale=0.8, size=40)
        dropped = np.argsort(candidate - base)[:15]
        kept = [n for n in range(40) if n not in dropped]
        sides = [
            [Observation(pair=n, unit=f"u{n}", numerator=float(base[n])) for n in range(40)],
            [Observation(pair=n, unit=f"u{n}", numerator=float(candidate[n])) for n in kept],
        ]
        c = Compared(
            cell="c", metric="m", better="higher", margin=0.1, coverage=len(kept) / 40,
            contrast=contrast("m", ("b", "c"), *sides),
        )  # fmt: skip
        failures = wrongs("c", "health/failed", [(False, n in dropped) for n in range(40)])
        assert overall([*verdicts([c]), failures]) == "worse"
