"""Builders of a cell's record, replies and scores, as the store gives them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from farm.metrics import REPLY_COLUMNS, SCORE_COLUMNS
from farm.records import CellRecord, ScorerRecord
from farm.types import MetricSpec

MOS = "quality/nisqa_mos"
ACCURACY = "choice/accuracy"
WER = "text/wer"


def scorer(name: str, metric: str, aggregate: Any, better: Any, needs: str) -> ScorerRecord:
    spec = MetricSpec(name=metric, aggregate=aggregate, better=better)
    return ScorerRecord(name=name, version="1", weights="", needs=needs, metrics=(spec,))


SCORERS = (
    scorer("nisqa", MOS, "mean", "higher", "speech"),
    scorer("choice", ACCURACY, "rate", "higher", "text"),
    scorer("wer", WER, "ratio", "lower", "text"),
)


def record(cell_id: str = "c0", **changes: Any) -> CellRecord:
    fields: dict[str, Any] = {
        "cell_id": cell_id,
        "sweep_id": "sweep0",
        "run_name": f"toy@1234567 · p1 · {cell_id}",
        "benchmark": "toybench",
        "task": "toybench.talk",
        "model": "toy",
        "checkpoint": "1234567" + "0" * 57,
        "prompt": "p1",
        "prompt_example": "Answer in one sentence.",
        "condition": "white_10db",
        "condition_parameters": {"snr_db": 10},
        "arm": {},
        "adapter": {"_target_": "models.toy.Toy", "llm": {"max_new_tokens": 24}},
        "speech_out": True,
        "sample_rate_hz": 16000,
        "repeats": 1,
        "planned": 4,
        "scorers": SCORERS,
    }
    return CellRecord(**{**fields, **changes})


def reply(trial: str, item: str, unit: str, **changes: Any) -> dict[str, Any]:
    fields = dict.fromkeys(REPLY_COLUMNS) | {
        "trial_id": trial,
        "attempt": 1,
        "turn": 0,
        "cell_id": "c0",
        "item_key": item,
        "unit": unit,
        "factors": {},
        "repeat": 0,
        "text": "three small words",
        "speech_uri": f"speech/{trial}.flac",
        "speech_seconds": 2.0,
        "truncated": False,
        "seconds": 0.5,
        "batch_size": 2,
    }
    return fields | changes


def failed(trial: str, item: str, unit: str, **changes: Any) -> dict[str, Any]:
    gone = dict.fromkeys(["text", "speech_uri", "speech_seconds", "seconds", "batch_size"])
    return reply(trial, item, unit, **gone, failure_kind="model_error", failure_message="boom") | changes


def score(trial: str, name: str = MOS, value: float | None = None, **changes: Any) -> dict[str, Any]:
    by = next(s for s in SCORERS if s.metrics[0].name == name)
    fields: dict[str, Any] = dict.fromkeys(SCORE_COLUMNS) | {
        "score_id": f"{trial}-{name}",
        "trial_id": trial,
        "attempt": 1,
        "turn": 0,
        "cell_id": "c0",
        "scorer": by.name,
        "scorer_version": by.version,
        "name": name,
        "value": value,
        "status": "ok",
        "reason": "",
        "written_ns": 1,
    }
    return fields | changes


def replies_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    factors = pa.array([list(row["factors"].items()) for row in rows], pa.map_(pa.string(), pa.string()))
    columns = {name: [row[name] for row in rows] for name in REPLY_COLUMNS if name != "factors"}
    return pa.table({**columns, "factors": factors})


def scores_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.table({name: [row[name] for row in rows] for name in SCORE_COLUMNS})
