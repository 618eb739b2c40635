"""A cell's replies and scores summed up: metrics with their interval over units and their coverage.

Invariant: no trial leaves a denominator unseen. A rate counts a failed or unparsed trial as not correct; a mean is
over scored trials and carries the share of planned trials that it rests on; a metric without any score has no value,
never 0, and says why. Speech of people and of synthesisers, and what a script is spoken with (its cue, another one,
none), are never pooled into one summary: a cell's headline is over the speech that has the cue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from farm import statistics
from farm.records import CellRecord, ScorerRecord
from farm.types import MetricSpec

COVERAGE_FLOOR = 0.95
"""Below this share of planned trials no verdict is drawn from a metric."""
VOICE_SOURCE = "voice_source"
"""A factor whose levels (human, synthetic) are never pooled."""
VOICE_STYLE = "voice_style"
"""Another one (target, alternative, neutral)."""
HEADLINE_STYLE = "target"
"""The style that a metric's plain name is about."""
REPLY_COLUMNS = (
    "trial_id", "attempt", "turn", "cell_id", "item_key", "unit", "factors", "repeat", "text", "speech_uri",
    "speech_seconds", "truncated", "seconds", "batch_size", "failure_kind", "failure_message",
)  # fmt: skip
"""What of the store's replies is read here and by the projection."""
SCORE_COLUMNS = (
    "score_id", "trial_id", "attempt", "turn", "cell_id", "scorer", "scorer_version", "name", "value", "label",
    "numerator", "denominator", "status", "reason", "written_ns",
)  # fmt: skip

UNJUDGED = ("unavailable", "judge_error")
"""Statuses that say nothing of the reply."""

Row = Mapping[str, Any]
Pair = tuple[Row, Row | None]
"""A reply and its score under one name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One aggregate over a cell."""

    name: str
    """`quality/nisqa_mos`."""
    value: float | None
    """None where nothing could be scored; `note` then says why."""
    ci_low: float | None = None
    ci_high: float | None = None
    units: int = 0
    """Independent units that it rests on."""
    scored: int = 0
    """Trials that it rests on."""
    planned: int = 0
    better: Literal["higher", "lower", "neither"] = "neither"
    note: str = ""
    """The commonest reason, where there is one: why there is no value, or what is to be known of it."""

    @property
    def coverage(self) -> float:
        """Share of planned trials that it rests on."""
        return self.scored / self.planned if self.planned else 0.0

    @property
    def firm(self) -> bool:
        """Whether a verdict may be drawn from it."""
        return self.value is not None and self.coverage >= COVERAGE_FLOOR


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSummary:
    """A cell's metrics, of one voice source and style."""

    record: CellRecord
    voice_source: str
    """`human`, `synthetic`; empty where the items do not say."""
    voice_style: str
    """`target`, `alternative`, `neutral`; empty where the items do not say."""
    suffix: str
    """What its metrics' names end in: `.human` beside another source, `.neutral` for a style that is no headline."""
    planned: int
    """Trials planned; where a cell mixes voices, shared out by what ran of each."""
    done: int
    """Trials with a reply."""
    failed: int
    metrics: tuple[Metric, ...]

    def metric(self, name: str) -> Metric | None:
        """The metric of that name."""
        return next((m for m in self.metrics if m.name == name), None)


def summarise(record: CellRecord, replies: pa.Table, scores: pa.Table) -> tuple[CellSummary, ...]:
    """A cell's metrics, apart for each voice source and style, the headline first: one summary, mostly.

    Args:
        record: the cell's record.
        replies: the cell's rows of the store's replies (last attempts), `REPLY_COLUMNS` at least.
        scores: the cell's rows of the store's scores.
    """
    rows = replies.to_pylist()
    by_trial = scores_by_trial(record, rows, scores.to_pylist())
    voices: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        factors = dict(row["factors"] or ())
        voices.setdefault((factors.get(VOICE_SOURCE, ""), factors.get(VOICE_STYLE, "")), []).append(row)
    planned = max(record.planned, len(rows))
    several_sources = len({source for source, _ in voices}) > 1
    return tuple(
        _summary(
            record,
            voice,
            _suffix(voice, several_sources),
            group,
            by_trial,
            round(planned * len(group) / len(rows)),
        )
        for voice, group in sorted(voices.items(), key=lambda entry: _place(entry[0]))
    ) or (_summary(record, ("", ""), "", [], {}, planned),)


def _suffix(voice: tuple[str, str], several_sources: bool) -> str:
    source, style = voice
    shown = style not in ("", HEADLINE_STYLE)
    return (f".{source or 'unknown'}" if several_sources else "") + (f".{style}" if shown else "")


def _place(voice: tuple[str, str]) -> tuple[str, bool, str]:
    source, style = voice
    return source, style != HEADLINE_STYLE, style


def cell_metrics(record: CellRecord, replies: pa.Table, scores: pa.Table) -> list[Metric]:
    """A cell's metrics under the names they have in MLflow.

    `quality/utmos`; `quality/utmos.human` beside `quality/utmos.synthetic` where the cell holds both; and
    `quality/utmos.neutral` for the speech without a cue.
    """
    return [metric for summary in summarise(record, replies, scores) for metric in named(summary)]


def named(summary: CellSummary) -> Iterator[Metric]:
    """A summary's metrics, their names ending in what tells its voice from the headline's."""
    for metric in summary.metrics:
        yield replace(metric, name=metric.name + summary.suffix)


# --- which score counts ------------------------------------------------------------------------------------------


def scores_by_trial(
    record: CellRecord, replies: Sequence[Row], scores: Sequence[Row]
) -> dict[tuple[str, str], Row]:
    """(trial id, metric name) -> the score that counts: of the last attempt, by the scorer as the record names it."""
    attempts = {row["trial_id"]: row["attempt"] for row in replies}
    scorers = {metric.name: scorer for scorer in record.scorers for metric in scorer.metrics}
    chosen: dict[tuple[str, str], Row] = {}
    for score in scores:
        scorer = scorers.get(score["name"])
        if scorer and attempts.get(score["trial_id"]) == score["attempt"] and _is_by(score, scorer):
            key = score["trial_id"], score["name"]
            chosen[key] = _later(chosen.get(key), score)
    return chosen


def _is_by(score: Row, scorer: ScorerRecord) -> bool:
    return bool(score["scorer"] == scorer.name and score["scorer_version"] == scorer.version)


def _later(before: Row | None, score: Row) -> Row:
    """The newer score (weights came, gold was corrected), unless it knows less: no weights here, a judge that erred."""
    if before is None:
        return score
    old, new = sorted((before, score), key=lambda row: (row["written_ns"], row["score_id"]))
    return old if new["status"] in UNJUDGED and old["status"] not in UNJUDGED else new


# --- from scores to metrics --------------------------------------------------------------------------------------


def _summary(
    record: CellRecord,
    voice: tuple[str, str],
    suffix: str,
    rows: Sequence[Row],
    scores: Mapping[tuple[str, str], Row],
    planned: int,
) -> CellSummary:
    answered = [row for row in rows if row["failure_kind"] is None]
    specs = [(scorer, spec) for scorer in record.scorers for spec in scorer.metrics]
    judged = [_of_scores(spec, rows, scores, planned) for _, spec in specs]
    return CellSummary(
        record=record,
        voice_source=voice[0],
        voice_style=voice[1],
        suffix=suffix,
        planned=planned,
        done=len(answered),
        failed=len(rows) - len(answered),
        metrics=(
            *judged,
            *_health(record, rows, scores, planned),
            *_speed(answered, planned),
            *_content(record, answered, planned),
        ),
    )


def _of_scores(
    spec: MetricSpec, rows: Sequence[Row], scores: Mapping[tuple[str, str], Row], planned: int
) -> Metric:
    """One scorer's metric. Trials it does not apply to are no part of it; all others are, scored or not."""
    found = [(row, scores.get((row["trial_id"], spec.name))) for row in rows]
    apply = [(row, s) for row, s in found if not (s and s["status"] == "not_applicable")]
    counted = (
        _decided(apply) if spec.aggregate == "rate" else [(row, s) for row, s in apply if _is_ok(row, s)]
    )
    estimate = _estimate(spec, counted)
    reasons = [s for row, s in found if s and _is_ok(row, s) == bool(estimate)]
    note = _commonest(reasons) or ("" if estimate else _unscored(rows, counted))
    return _metric(spec.name, estimate, len(counted), planned - len(found) + len(apply), spec.better, note)


def _estimate(spec: MetricSpec, counted: Sequence[Pair]) -> statistics.Estimate | None:
    if spec.aggregate == "ratio":
        return _ratio(counted)
    return _bleu(counted) if spec.aggregate == "bleu" else _mean(counted, _value)


def _is_ok(row: Row, score: Row | None) -> bool:
    return row["failure_kind"] is None and score is not None and score["status"] == "ok"


def _value(row: Row, score: Row | None) -> float:
    """Of a rate's failed or unparsed trial: 0, not correct."""
    return float(score["value"]) if score and _is_ok(row, score) else 0.0


def _decided(pairs: Sequence[Pair]) -> list[Pair]:
    """A rate's trials: a judge that erred or has not judged yet is no wrong answer, it lowers the coverage instead."""
    decided = [
        (row, s)
        for row, s in pairs
        if row["failure_kind"] is not None or (s and s["status"] in ("ok", "unparsed", "failed"))
    ]
    none_judged = not any(s and s["status"] in ("ok", "unparsed") for _, s in pairs)
    return [] if none_judged and len(decided) < len(pairs) else decided


def _ratio(pairs: Sequence[Pair]) -> statistics.Estimate | None:
    scores = [s for _, s in pairs if s]
    units = [row["unit"] for row, _ in pairs]
    return statistics.ratio([s["numerator"] for s in scores], [s["denominator"] for s in scores], units)


def _bleu(pairs: Sequence[Pair]) -> statistics.Estimate | None:
    counts = [[float(count) for count in s["label"].split()] for _, s in pairs if s]
    return statistics.bleu(counts, [row["unit"] for row, _ in pairs]) if counts else None


def _commonest(scores: Sequence[Row]) -> str:
    """`unavailable: no weights; python scripts/fetch_weights.py nisqa`."""
    reasons = Counter((s["status"], s["reason"]) for s in scores if s["reason"])
    if not reasons:
        return ""
    (status, reason), _ = min(reasons.items(), key=lambda entry: (-entry[1], entry[0]))
    return str(reason) if status == "ok" else f"{status}: {reason}"


def _unscored(rows: Sequence[Row], counted: Sequence[Pair]) -> str:
    if counted:
        return "every denominator is 0"
    if not rows:
        return "no trial has run"
    kinds = Counter(row["failure_kind"] for row in rows if row["failure_kind"])
    if sum(kinds.values()) == len(rows):
        return f"every trial failed, mostly with {min(kinds, key=lambda kind: (-kinds[kind], kind))}"
    return "not scored yet"


# --- what needs no scorer ----------------------------------------------------------------------------------------


def _health(
    record: CellRecord, rows: Sequence[Row], scores: Mapping[tuple[str, str], Row], planned: int
) -> Iterator[Metric]:
    answered = [row for row in rows if row["failure_kind"] is None]
    failed = _mean_of(rows, lambda row: float(row["failure_kind"] is not None))
    yield _metric("health/failed", failed, len(rows), planned, "lower", _failures(rows))
    share = statistics.Estimate(len(answered) / planned if planned else 0.0, None, None, 0)
    yield _metric("health/coverage", share, len(answered), planned, "higher")
    cut = _mean_of(answered, lambda row: float(bool(row["truncated"])))
    yield _metric("health/truncated", cut, len(answered), planned, "lower")
    rates = [spec.name for s in record.scorers for spec in s.metrics if spec.aggregate == "rate"]
    if rates:
        unparsed_trials = {
            trial for (trial, name), s in scores.items() if name in rates and s["status"] == "unparsed"
        }
        unparsed = _mean_of(answered, lambda row: float(row["trial_id"] in unparsed_trials))
        yield _metric("health/unparsed", unparsed, len(answered), planned, "lower")


def _failures(rows: Sequence[Row]) -> str:
    kinds = Counter(row["failure_kind"] for row in rows if row["failure_kind"])
    return ", ".join(
        f"{count} {kind}" for kind, count in sorted(kinds.items(), key=lambda kv: (-kv[1], kv[0]))
    )


def _speed(answered: Sequence[Row], planned: int) -> Iterator[Metric]:
    timed = [row for row in answered if row["seconds"] is not None]
    busy_s = sum(row["seconds"] for row in timed)
    if not busy_s > 0:
        return
    yield _plain("speed/throughput", len(timed) / busy_s, len(timed), planned, "higher")
    latencies_s = [row["seconds"] * (row["batch_size"] or 1) for row in timed]
    for name, share in (("speed/latency_p50_s", 0.5), ("speed/latency_p95_s", 0.95)):
        yield _plain(name, float(np.quantile(latencies_s, share)), len(timed), planned, "lower")
    speech_s = sum(row["speech_seconds"] or 0.0 for row in timed)
    if speech_s > 0:
        yield _plain("speed/rtf", busy_s / speech_s, len(timed), planned, "lower")


def _content(record: CellRecord, answered: Sequence[Row], planned: int) -> Iterator[Metric]:
    spoke = [row for row in answered if row["text"] is not None]
    words = _mean_of(spoke, lambda row: float(len(row["text"].split())))
    yield _metric("text/reply_words", words, len(spoke), planned, "neither")
    if record.speech_out:
        heard = [row for row in answered if row["speech_seconds"] is not None]
        seconds = _mean_of(heard, lambda row: float(row["speech_seconds"]))
        yield _metric("speech/seconds", seconds, len(heard), planned, "neither")


def _mean(pairs: Sequence[Pair], value: Callable[[Row, Row | None], float]) -> statistics.Estimate | None:
    if not pairs:
        return None
    items, units = [row["item_key"] for row, _ in pairs], [row["unit"] for row, _ in pairs]
    return statistics.mean([value(row, score) for row, score in pairs], items, units)


def _mean_of(rows: Sequence[Row], value: Callable[[Row], float]) -> statistics.Estimate | None:
    return _mean([(row, None) for row in rows], lambda row, _: value(row))


def _plain(name: str, value: float, scored: int, planned: int, better: Literal["higher", "lower"]) -> Metric:
    return _metric(name, statistics.Estimate(value, None, None, 0), scored, planned, better)


def _metric(
    name: str,
    estimate: statistics.Estimate | None,
    scored: int,
    planned: int,
    better: Literal["higher", "lower", "neither"],
    note: str = "",
) -> Metric:
    return Metric(
        name=name,
        value=estimate.value if estimate else None,
        ci_low=estimate.ci_low if estimate else None,
        ci_high=estimate.ci_high if estimate else None,
        units=estimate.units if estimate else 0,
        scored=scored if estimate else 0,
        planned=planned,
        better=better,
        note=note,
    )
