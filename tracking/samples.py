"""The trials of a cell, worst first: the item table, and the speech samples that are listened to first.

Invariant: a failed trial is worse than any score; what could not be scored follows what could.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from farm.metrics import Row, scores_by_trial
from farm.records import CellRecord
from farm.types import MetricSpec


def item_rows(record: CellRecord, replies: Sequence[Row], scores: Sequence[Row]) -> list[dict[str, Any]]:
    """One row a trial, worst first; `item_key` and `text` lead, by which MLflow's table groups and compares."""
    by_trial = scores_by_trial(record, replies, scores)
    specs = [spec for scorer in record.scorers for spec in scorer.metrics]
    factors = sorted({name for row in replies for name, _ in _pairs(row["factors"])})
    rows = [_row(reply, by_trial, specs, factors) for reply in replies]
    ranked = ranking(record, rows)
    return sorted(rows, key=lambda row: _badness(row, ranked))


def ranking(record: CellRecord, rows: Sequence[Row]) -> MetricSpec | None:
    """The metric by which trials are ranked: the first of a speech scorer that has a value, else the first at all."""
    speech = [spec for s in record.scorers if s.needs == "speech" for spec in s.metrics]
    text = [spec for s in record.scorers if s.needs != "speech" for spec in s.metrics]
    scored = (spec for spec in (*speech, *text) if any(row[spec.name] is not None for row in rows))
    return next(scored, None)


def worst_speech(
    record: CellRecord, rows: Sequence[Row], count: int, fetch: Callable[[str], bytes]
) -> dict[str, bytes]:
    """The first `count` trials of `item_rows` that have speech and a score: file name -> FLAC.

    Args:
        record: the cell.
        rows: from `item_rows`.
        count: files at most.
        fetch: reads a speech URI of the store.
    """
    ranked = ranking(record, rows)
    if ranked is None:
        return {}
    heard = [row for row in rows if row["speech_uri"] and row[ranked.name] is not None][:count]
    return {
        _file_name(place, row, ranked): fetch(row["speech_uri"]) for place, row in enumerate(heard, start=1)
    }


def _row(
    reply: Row, scores: Mapping[tuple[str, str], Row], specs: Sequence[MetricSpec], factors: Sequence[str]
) -> dict[str, Any]:
    found = {spec.name: scores.get((reply["trial_id"], spec.name)) for spec in specs}
    have = dict(_pairs(reply["factors"]))
    return {
        "item_key": reply["item_key"],
        "text": reply["text"],
        "repeat": reply["repeat"],
        "status": reply["failure_kind"] or "ok",
        **{name: _shown(score) for name, score in found.items()},
        "message": reply["failure_message"] or _reason(found.values()),
        "unit": reply["unit"],
        **{f"factor.{name}": have.get(name) for name in factors},
        "speech_seconds": reply["speech_seconds"],
        "seconds": reply["seconds"],
        "trial_id": reply["trial_id"],
        "attempt": reply["attempt"],
        "speech_uri": reply["speech_uri"],
    }


def _pairs(factors: Any) -> Sequence[tuple[str, str]]:
    """A map column's value, which Arrow gives as pairs."""
    return list(dict(factors or ()).items())


def _shown(score: Row | None) -> float | None:
    if score is None or score["status"] != "ok":
        return None
    if score["value"] is not None:
        return float(score["value"])
    return float(score["numerator"] / score["denominator"]) if score["denominator"] else None


def _reason(scores: Any) -> str:
    reasons = (
        f"{s['status']}: {s['reason']}" for s in scores if s and s["status"] not in ("ok", "not_applicable")
    )
    return next(reasons, "")


def _badness(row: Row, ranked: MetricSpec | None) -> tuple[int, float, str, int]:
    value = row[ranked.name] if ranked else None
    if row["status"] != "ok":
        place = 0
    else:
        place = 2 if value is None else 1
    signed = math.inf if value is None else value if ranked and ranked.better == "higher" else -value
    return place, signed, row["item_key"], row["repeat"]


def _file_name(place: int, row: Row, ranked: MetricSpec) -> str:
    key = re.sub(r"[^\w.-]+", "_", row["item_key"])[:80]
    return f"worst/{place}_{ranked.name.split('/')[-1]}_{row[ranked.name]:.2f}_{key}_r{row['repeat']}.flac"
