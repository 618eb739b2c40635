"""Contrasts by hand, and their promises by simulation."""

import numpy as np
import pytest

from farm.contrasts import Contrast, Observation, benjamini_hochberg, contrast, family, holm

NAMES = ("clean", "noise")


def seen(values: dict[str, float], unit: str | None = None, denominator: float = 1.0) -> list[Observation]:
    return [
        Observation(pair=key, unit=unit or key, numerator=value, denominator=denominator)
        for key, value in values.items()
    ]


def test_the_difference_is_second_less_first_over_what_both_have() -> None:
    found = contrast("m", NAMES, seen({"a": 1, "b": 2, "c": 9}), seen({"a": 3, "b": 2, "d": 0}))
    assert (found.first_value, found.second_value, found.difference) == (1.5, 2.5, 1.0)
    assert (found.units, found.pairs, found.unpaired) == (2, 2, 2)


def test_repeats_are_averaged_within_a_pair_and_pairs_within_a_unit() -> None:
    """One script with three recordings weighs as much as one with one."""
    first = [
        Observation(pair=(unit, n), unit=unit, numerator=0.0) for unit, n in (("s", 1), ("s", 2), ("t", 1))
    ]
    second = [
        Observation(pair=("s", 1), unit="s", numerator=1.0),
        Observation(pair=("s", 1), unit="s", numerator=3.0),
        Observation(pair=("s", 2), unit="s", numerator=4.0),
        Observation(pair=("t", 1), unit="t", numerator=1.0),
    ]
    assert contrast("m", NAMES, first, second).difference == pytest.approx((3 + 1) / 2)


def test_a_ratio_compares_sums() -> None:
    first = seen({"a": 1}, denominator=10) + seen({"b": 0}, denominator=90)
    second = seen({"a": 5}, denominator=10) + seen({"b": 5}, denominator=90)
    found = contrast("wer", NAMES, first, second, "ratio")
    assert (found.first_value, found.second_value) == (0.01, 0.1)


def test_sides_that_share_nothing_have_no_difference() -> None:
    found = contrast("m", NAMES, seen({"a": 1}), seen({"b": 1}))
    assert found.difference is None and found.p is None and found.unpaired == 2
    assert contrast("m", NAMES, [], []).difference is None
    zero = contrast("wer", NAMES, seen({"a": 0}, denominator=0), seen({"a": 0}, denominator=0), "ratio")
    assert zero.difference is None


def test_the_p_value_is_exact_for_few_units_and_has_its_floor() -> None:
    """All five units the same way: 2 of 32 flips are as extreme."""
    up = contrast("m", NAMES, seen(dict.fromkeys("abcde", 0.0)), seen(dict.fromkeys("abcde", 1.0)))
    assert up.p == pytest.approx(2 / 32) and up.floor == pytest.approx(2 / 32)
    mixed = contrast("m", NAMES, seen(dict.fromkeys("ab", 0.0)), seen({"a": 1.0, "b": -1.0}))
    assert mixed.p == 1.0
    assert contrast("m", NAMES, seen({"a": 0}), seen({"a": 1})).p is None


def test_one_unit_has_no_interval_and_several_have_one_around_the_difference() -> None:
    assert contrast("m", NAMES, seen({"a": 0}), seen({"a": 1})).ci_low is None
    generator = np.random.default_rng(1)
    keys = [f"u{n}" for n in range(40)]
    first = dict(zip(keys, generator.normal(size=40), strict=True))
    second = {key: value + 1 + generator.normal(scale=0.2) for key, value in first.items()}
    found = contrast("m", NAMES, seen(first), seen(second))
    assert found.ci_low is not None and found.ci_high is not None and found.difference is not None
    assert 0.8 < found.ci_low < found.difference < found.ci_high < 1.2


def test_order_and_naming_of_rows_change_nothing() -> None:
    first, second = seen({"a": 1, "b": 2, "c": 4}), seen({"a": 2, "b": 2, "c": 3})
    assert contrast("m", NAMES, first, second) == contrast("m", NAMES, first[::-1], second[::-1])


def test_holm_and_benjamini_hochberg_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.6]) == pytest.approx([1.0, 1.0])
    assert benjamini_hochberg([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.04, 0.04])
    assert holm([]) == []


def test_a_family_is_corrected_and_what_has_no_p_value_stays_out_of_it() -> None:
    bare = Contrast(
        metric="m", first="a", second="b", first_value=0, second_value=0, difference=0, p=0.02, units=9
    )
    untested = Contrast(
        metric="m", first="a", second="b", first_value=None, second_value=None, difference=None
    )
    assert [c.p_holm for c in family([bare, untested, bare])] == [
        pytest.approx(0.04),
        None,
        pytest.approx(0.04),
    ]


def test_false_alarms_stay_at_their_level_with_repeats_and_recordings_that_are_alike() -> None:
    """400 null contrasts of 12 scripts x 2 recordings x 3 repeats: at most 5 %, give or take three standard errors."""
    generator = np.random.default_rng(7)
    alarms = 0
    for _ in range(400):
        script = generator.normal(size=12)
        sides = []
        for _ in range(2):
            own = script + generator.normal(scale=0.5, size=12)
            sides.append(
                [
                    Observation(pair=(u, r), unit=str(u), numerator=own[u] + generator.normal(scale=0.3))
                    for u in range(12)
                    for r in range(2)
                    for _ in range(3)
                ]
            )
        p = contrast("m", NAMES, *sides).p
        alarms += p is not None and p < 0.05
    assert alarms / 400 <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5
