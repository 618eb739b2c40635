"""A report's input built by hand: observations and replies of a few cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farm.observations import Seen
from farm.records import CellRecord, ScorerRecord
from farm.types import MetricSpec
from tracking.report.loaded import Loaded

SPECS = {
    "choice/accuracy": MetricSpec(name="choice/accuracy", aggregate="rate", better="higher"),
    "judge/c4": MetricSpec(name="judge/c4", aggregate="mean", better="higher"),
    "judge/ves": MetricSpec(name="judge/ves", aggregate="mean", better="higher"),
    "text/wer": MetricSpec(name="text/wer", aggregate="ratio", better="lower"),
    "quality/nisqa_mos": MetricSpec(name="quality/nisqa_mos", aggregate="mean", better="higher"),
}


def record(task: str = "echomind.conversation", **changes: Any) -> CellRecord:
    scorers = tuple(
        ScorerRecord(name=name, version="1", weights="", needs="text", metrics=(spec,))
        for name, spec in SPECS.items()
    )
    whole: dict[str, Any] = dict(
        cell_id="", sweep_id="w", run_name="", benchmark="echomind", task=task, model="m", checkpoint="0", prompt="p1",
        prompt_example="", condition="clean", condition_parameters={}, arm={}, adapter={}, speech_out=True,
        sample_rate_hz=None, repeats=1, planned=1, scorers=scorers,
    )  # fmt: skip
    whole |= changes
    whole["cell_id"] = "/".join(str(whole[k]) for k in ("task", "model", "prompt", "condition", "arm"))
    return CellRecord(**whole)


def rows(
    metric: str,
    values: Mapping[str, float],
    task: str = "echomind.conversation",
    *,
    style: str = "target",
    source: str = "synthetic",
    **facets: Any,
) -> list[Seen]:
    """One observation a script."""
    cell = record(task, **facets)
    return [
        Seen(
            record=cell, spec=SPECS[metric], trial_id=f"{cell.cell_id}/{unit}/{style}/{source}/{metric}",
            item_key=f"{source}/{unit}/{style}", unit=unit.split("#")[0], pair_id=unit, repeat=0,
            factors={"voice_style": style, "voice_source": source, "attribute": "sad"}, numerator=value,
            denominator=1.0,
        )
        for unit, value in values.items()
    ]  # fmt: skip


def said(text: str, unit: str, style: str, repeat: int = 0, **facets: Any) -> dict[str, Any]:
    """A reply row."""
    cell = record(**facets)
    return {
        "trial_id": f"{cell.cell_id}/{unit}/{style}/{repeat}/said", "cell_id": cell.cell_id, "unit": unit,
        "factors": {"voice_style": style, "voice_source": "synthetic"}, "text": text, "failure_kind": None,
        "speech_uri": None, "model": cell.model, "task": cell.task,
    }  # fmt: skip


def loaded(observations: list[Seen], replies: list[dict[str, Any]] | None = None) -> Loaded:
    """As `tracking.report.loaded.load` would give it."""
    records = {r.record.cell_id: r.record for r in observations}
    told = {row["trial_id"]: row for row in replies or []}
    for row in told.values():
        task, model, prompt, *_ = row["cell_id"].split("/")
        records.setdefault(row["cell_id"], record(task, model=model, prompt=prompt))
    bare = {"text": "words", "speech_uri": None, "failure_kind": None, "factors": {}, "unit": ""}
    shown = {
        r.trial_id: {
            **bare,
            "trial_id": r.trial_id,
            "cell_id": r.record.cell_id,
            "model": r.record.model,
            "task": r.record.task,
        }
        for r in observations
    }
    return Loaded(
        benchmark="echomind",
        records=tuple(records.values()),
        summaries=(),
        rows=tuple(observations),
        replies={**shown, **told},
    )
