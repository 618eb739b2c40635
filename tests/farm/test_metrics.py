"""Metrics by hand-computed values: python -m pytest tests/farm/test_metrics.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from farm.metrics import Metric, cell_metrics, summarise
from farm.records import ScorerRecord
from farm.types import MetricSpec
from tests.farm.cells import ACCURACY, MOS, WER, failed, record, replies_table, reply, score, scores_table

Rows = Sequence[Mapping[str, Any]]


def metrics(replies: Rows, scores: Rows, **changes: Any) -> dict[str, Metric]:
    found = cell_metrics(record(**changes), replies_table(replies), scores_table(scores))
    return {metric.name: metric for metric in found}


FOUR = [reply("t1", "a", "u"), reply("t2", "b", "u"), reply("t3", "c", "v"), failed("t4", "d", "v")]


def test_mean_is_over_scored_trials_and_carries_its_coverage() -> None:
    mos = metrics(FOUR, [score("t1", value=2.0), score("t2", value=4.0), score("t3", value=5.0)])[MOS]
    assert mos.value == pytest.approx((3.0 + 5.0) / 2)
    assert (mos.units, mos.scored, mos.planned, mos.coverage) == (2, 3, 4, 0.75)
    assert (mos.ci_low, mos.ci_high) == (3.0, 5.0)
    assert not mos.firm


def test_rate_counts_failed_and_unparsed_as_not_correct() -> None:
    scores = [
        score("t1", ACCURACY, 1.0),
        score("t2", ACCURACY, status="unparsed", reason="no letter"),
        score("t3", ACCURACY, 1.0),
    ]
    found = metrics(FOUR, scores)
    assert found[ACCURACY].value == pytest.approx(0.5)
    assert found[ACCURACY].coverage == 1.0
    assert found["health/unparsed"].value == pytest.approx((0.5 + 0.0) / 2)
    assert found["health/failed"].value == pytest.approx(0.25)
    assert found["health/failed"].note == "1 model_error"


def test_a_judge_that_erred_is_no_wrong_answer_but_lowers_coverage() -> None:
    scores = [
        score("t1", ACCURACY, 1.0),
        score("t2", ACCURACY, status="judge_error", reason="HTTP 500"),
        score("t3", ACCURACY, 1.0),
    ]
    accuracy = metrics(FOUR, scores)[ACCURACY]
    assert accuracy.value == pytest.approx((1.0 + 0.5) / 2)
    assert accuracy.coverage == 0.75


def test_rate_is_unknown_while_nothing_is_judged_even_if_a_trial_failed() -> None:
    accuracy = metrics(FOUR, [])[ACCURACY]
    assert (accuracy.value, accuracy.note) == (None, "not scored yet")


def test_rate_is_zero_where_every_trial_failed() -> None:
    accuracy = metrics([failed("t1", "a", "u"), failed("t2", "b", "v")], [], planned=2)[ACCURACY]
    assert (accuracy.value, accuracy.coverage) == (0.0, 1.0)


def test_ratio_divides_sums() -> None:
    scores = [
        score("t1", WER, numerator=1.0, denominator=10.0),
        score("t2", WER, numerator=0.0, denominator=10.0),
        score("t3", WER, numerator=4.0, denominator=20.0),
    ]
    wer = metrics(FOUR, scores)[WER]
    assert (wer.value, wer.ci_low, wer.ci_high) == (0.125, pytest.approx(0.05), pytest.approx(0.2))


def test_unavailable_has_no_value_and_says_the_command() -> None:
    reason = "no weights; python scripts/fetch_weights.py nisqa"
    scores = [score(t, status="unavailable", reason=reason) for t in ("t1", "t2", "t3")]
    mos = metrics(FOUR, scores)[MOS]
    assert (mos.value, mos.scored, mos.coverage) == (None, 0, 0.0)
    assert mos.note == f"unavailable: {reason}"


TRIALS = ("t1", "t2", "t3")


def test_the_newest_score_of_a_trial_counts() -> None:
    old = [score(t, status="unavailable", reason="no weights") for t in TRIALS]
    new = [score(t, value=3.0, score_id=f"new-{t}", written_ns=2) for t in TRIALS]
    for rows in ([*old, *new], [*new, *old]):
        mos = metrics(FOUR, rows)[MOS]
        assert (mos.value, mos.scored, mos.note) == (3.0, 3, "")


def test_a_score_is_not_lost_to_a_later_one_without_weights() -> None:
    old = [score(t, value=3.0) for t in TRIALS]
    new = [
        score(t, status="unavailable", reason="no weights", score_id=f"new-{t}", written_ns=2) for t in TRIALS
    ]
    assert metrics(FOUR, [*new, *old])[MOS].value == 3.0


def test_scores_of_an_earlier_attempt_do_not_count() -> None:
    mos = metrics([reply("t1", "a", "u", attempt=2)], [score("t1", value=1.0)], planned=1)[MOS]
    assert mos.value is None


def test_trials_that_a_scorer_does_not_apply_to_are_no_part_of_it() -> None:
    scores = [score("t1", value=2.0), score("t2", status="not_applicable", reason="text only")]
    mos = metrics([reply("t1", "a", "u"), reply("t2", "b", "u")], scores, planned=2)[MOS]
    assert (mos.value, mos.coverage) == (2.0, 1.0)


def test_one_unit_has_a_value_without_interval() -> None:
    mos = metrics([reply("t1", "a", "u")], [score("t1", value=2.0)], planned=1)[MOS]
    assert (mos.value, mos.ci_low, mos.ci_high) == (2.0, None, None)


def test_trials_that_never_ran_lower_coverage() -> None:
    found = metrics([reply("t1", "a", "u")], [score("t1", value=2.0)], planned=10)
    assert found[MOS].coverage == pytest.approx(0.1)
    assert found["health/coverage"].value == pytest.approx(0.1)


def test_a_cell_without_replies_has_no_values_but_coverage_zero() -> None:
    found = metrics([], [])
    assert {name for name, metric in found.items() if metric.value is not None} == {"health/coverage"}
    assert found["health/coverage"].value == 0.0
    assert found[MOS].note == "no trial has run"


def test_speed_counts_busy_seconds_and_the_batch_a_trial_waited_for() -> None:
    found = metrics(FOUR, [])
    assert found["speed/throughput"].value == pytest.approx(2.0)
    assert found["speed/latency_p50_s"].value == pytest.approx(1.0)
    assert found["speed/rtf"].value == pytest.approx(0.25)
    assert found["text/reply_words"].value == pytest.approx(3.0)
    assert found["speech/seconds"].value == pytest.approx(2.0)


def test_human_and_synthetic_voices_are_summed_up_apart() -> None:
    replies = [
        reply("t1", "a", "u", factors={"voice_source": "human"}),
        reply("t2", "a2", "u", factors={"voice_source": "synthetic"}),
    ]
    scores = [score("t1", value=4.0), score("t2", value=2.0)]
    summaries = summarise(record(planned=2), replies_table(replies), scores_table(scores))
    values = {s.voice_source: m.value for s in summaries if (m := s.metric(MOS))}
    assert values == {"human": 4.0, "synthetic": 2.0}
    found = metrics(replies, scores, planned=2)
    assert found[f"{MOS}.human"].value == 4.0
    assert MOS not in found


def test_speech_with_another_cue_or_none_is_no_part_of_the_headline() -> None:
    styles = {"t1": "neutral", "t2": "target", "t3": "alternative"}
    replies = [reply(t, f"i{t}", "u", factors={"voice_style": style}) for t, style in styles.items()]
    scores = [score("t1", value=1.0), score("t2", value=4.0), score("t3", value=2.0)]
    found = metrics(replies, scores, planned=3)
    values = [found[name].value for name in (MOS, f"{MOS}.alternative", f"{MOS}.neutral")]
    assert values == [4.0, 2.0, 1.0]
    summaries = summarise(record(planned=3), replies_table(replies), scores_table(scores))
    assert [s.voice_style for s in summaries] == ["target", "alternative", "neutral"]
    assert all(s.metric(MOS).coverage == 1.0 for s in summaries)  # type: ignore[union-attr]


def test_a_cell_that_heard_only_neutral_speech_has_no_headline() -> None:
    found = metrics(
        [reply("t1", "a", "u", factors={"voice_style": "neutral"})], [score("t1", value=1.0)], planned=1
    )
    assert f"{MOS}.neutral" in found and MOS not in found


def test_sources_and_styles_are_told_apart_together() -> None:
    factors = [
        {"voice_source": s, "voice_style": v} for s in ("human", "synthetic") for v in ("target", "neutral")
    ]
    replies = [reply(f"t{n}", f"i{n}", "u", factors=f) for n, f in enumerate(factors)]
    scores = [score(f"t{n}", value=float(n)) for n in range(4)]
    found = metrics(replies, scores, planned=4)
    names = [f"{MOS}.human", f"{MOS}.human.neutral", f"{MOS}.synthetic", f"{MOS}.synthetic.neutral"]
    assert [found[name].value for name in names] == [0.0, 1.0, 2.0, 3.0]


def test_corpus_bleu_sums_counts_over_the_cell() -> None:
    spec = MetricSpec(name="text/bleu_corpus", aggregate="bleu", better="higher")
    overlap = ScorerRecord(name="overlap", version="1", weights="", needs="text", metrics=(spec,))
    labels = ["4 3 2 1 5 4 3 2 5 4", "0 0 0 0 5 4 3 2 5 5"]
    by = {"scorer": "overlap", "name": "text/bleu_corpus"}
    scores = [{**score(f"t{n}", value=9.0, label=text), **by} for n, text in enumerate(labels, start=1)]
    found = metrics([reply("t1", "a", "u"), reply("t2", "b", "v")], scores, planned=2, scorers=(overlap,))
    expected = 100 * (4 / 10 * 3 / 8 * 2 / 6 * 1 / 4) ** 0.25
    assert found["text/bleu_corpus"].value == pytest.approx(expected)
    assert found["text/bleu_corpus"].coverage == 1.0
