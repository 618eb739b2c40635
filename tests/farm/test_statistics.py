"""Averages and intervals over units: python -m pytest tests/farm/test_statistics.py."""

import numpy as np
import pytest

from farm import statistics


def test_repeats_average_within_items_and_items_within_units() -> None:
    values = [1.0, 3.0, 5.0, 10.0]
    items = ["a", "a", "b", "c"]
    units = ["u", "u", "u", "v"]
    # item means: a 2, b 5, c 10; unit means: u 3.5, v 10
    assert statistics.mean(values, items, units).value == pytest.approx(6.75)


def test_one_unit_has_no_interval() -> None:
    estimate = statistics.mean([1.0, 2.0], ["a", "b"], ["u", "u"])
    assert (estimate.value, estimate.ci_low, estimate.ci_high, estimate.units) == (1.5, None, None, 1)


def test_two_units_span_both_values() -> None:
    estimate = statistics.mean([0.0, 1.0], ["a", "b"], ["u", "v"])
    assert (estimate.ci_low, estimate.ci_high) == (0.0, 1.0)


def test_interval_is_the_same_each_time_and_in_any_order() -> None:
    values = np.random.default_rng(1).normal(size=40).tolist()
    names = [f"i{n}" for n in range(40)]
    forwards = statistics.mean(values, names, names)
    backwards = statistics.mean(values[::-1], names[::-1], names[::-1])
    assert forwards == statistics.mean(values, names, names)
    assert (forwards.ci_low, forwards.ci_high) == (backwards.ci_low, backwards.ci_high)


def test_interval_agrees_with_the_normal_one_for_many_units() -> None:
    values = np.random.default_rng(2).normal(3.0, 0.5, size=400)
    names = [f"i{n}" for n in range(400)]
    estimate = statistics.mean(values.tolist(), names, names)
    half = 1.96 * values.std(ddof=1) / 20
    assert estimate.ci_low == pytest.approx(values.mean() - half, abs=0.01)
    assert estimate.ci_high == pytest.approx(values.mean() + half, abs=0.01)


def test_interval_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    names = [f"i{n}" for n in range(60)]
    hits = 0
    for _ in range(300):
        estimate = statistics.mean(generator.normal(size=60).tolist(), names, names)
        assert estimate.ci_low is not None and estimate.ci_high is not None
        hits += estimate.ci_low <= 0 <= estimate.ci_high
    assert 0.90 <= hits / 300 <= 0.98


def test_ratio_sums_before_it_divides_and_resamples_units() -> None:
    estimate = statistics.ratio([1, 0, 4], [10, 10, 20], ["u", "u", "v"])
    assert estimate is not None
    assert estimate.value == pytest.approx(5 / 40)
    assert estimate.units == 2
    assert (estimate.ci_low, estimate.ci_high) == (pytest.approx(1 / 20), pytest.approx(4 / 20))


def test_ratio_over_nothing_is_none() -> None:
    assert statistics.ratio([0.0], [0.0], ["u"]) is None


def test_ratio_with_a_unit_that_has_no_denominator_has_no_interval() -> None:
    estimate = statistics.ratio([1.0, 0.0], [4.0, 0.0], ["u", "v"])
    assert estimate is not None
    assert (estimate.value, estimate.ci_low, estimate.ci_high) == (0.25, None, None)


def test_blocks_of_samples_give_the_interval_of_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(4).normal(size=50)
    whole = statistics.bootstrap(values, np.ones(50))
    monkeypatch.setattr(statistics, "CACHED_CELLS", 50 * 300)
    assert statistics.bootstrap(values, np.ones(50)) == pytest.approx(whole)


def test_corpus_bleu_by_hand() -> None:
    # "the dog runs home now" against "the dog runs home": matches 4, 3, 2, 1 of 5, 4, 3, 2 n-grams, no brevity penalty.
    counts = [4, 3, 2, 1, 5, 4, 3, 2, 5, 4]
    expected = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    assert statistics.bleu([counts], ["u"]) == statistics.Estimate(pytest.approx(expected), None, None, 1)


def test_corpus_bleu_of_nothing_in_common_or_of_nothing_said_is_0() -> None:
    nothing = [0, 0, 0, 0, 5, 4, 3, 2, 5, 4]
    silence = [0, 0, 0, 0, 0, 0, 0, 0, 0, 4]
    assert statistics.bleu([nothing, silence], ["u", "v"]) == statistics.Estimate(0.0, 0.0, 0.0, 2)
