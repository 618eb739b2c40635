"""What the result store remembers beside the replies: one record a cell, so that all that is shown can be rebuilt.

Invariant: a record holds plain JSON values only; `CellRecord.load(record.dump())` gives the record back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from farm import ids
from farm.plan import Plan
from farm.types import Cell, Item, MetricSpec, Outcome, Request, ScorerSpec, TextSegment, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerRecord:
    """A scorer as it was used on a cell."""

    name: str
    version: str
    weights: str
    needs: str
    metrics: tuple[MetricSpec, ...]

    @property
    def headlines(self) -> tuple[str, ...]:
        """Names of the metrics that the leaderboard shows: the first, and those that say so."""
        return tuple(m.name for n, m in enumerate(self.metrics) if n == 0 or m.headline)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRecord:
    """Everything about a cell that is not in its reply rows."""

    cell_id: str
    sweep_id: str
    """Of the last sweep that planned it."""
    run_name: str
    benchmark: str
    task: str
    model: str
    checkpoint: str
    prompt: str
    prompt_example: str
    """All text that the model is given with the cell's first item."""
    condition: str
    condition_parameters: Mapping[str, Any]
    arm: Mapping[str, str]
    adapter: Mapping[str, Any]
    """The model's identity tree: components, checkpoints' fingerprints, generation parameters."""
    speech_out: bool
    sample_rate_hz: int | None
    repeats: int
    planned: int
    """Trials of the cell in its last sweep."""
    scorers: tuple[ScorerRecord, ...]

    @property
    def uri(self) -> str:
        """Where it lies in the store."""
        return f"cells/{self.cell_id}.json"

    def dump(self) -> bytes:
        """As JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1).encode()

    @classmethod
    def load(cls, data: bytes) -> CellRecord:
        """From `dump`'s bytes."""
        raw = json.loads(data)
        scorers = tuple(
            ScorerRecord(**{**s, "metrics": tuple(MetricSpec(**m) for m in s["metrics"])})
            for s in raw.pop("scorers")
        )
        return cls(scorers=scorers, **raw)


def cell_record(plan: Plan, cell: Cell, scorers: Sequence[ScorerSpec]) -> CellRecord:
    """The record of one planned cell."""
    return CellRecord(
        cell_id=cell.cell_id,
        sweep_id=plan.sweep_id,
        run_name=" · ".join(filter(None, [cell.run_name, plan.replicate])),
        benchmark=cell.benchmark,
        task=cell.task,
        model=cell.model.name,
        checkpoint=cell.model.checkpoint,
        prompt=cell.prompt.name,
        prompt_example=prompt_example(plan.asked(cell)[0].request),
        condition=cell.condition.name,
        condition_parameters=condition_parameters(cell.condition.chain),
        arm=dict(cell.arm),
        adapter=dict(cell.model.identity),
        speech_out=cell.model.capabilities.speech_out,
        sample_rate_hz=cell.model.capabilities.sample_rate_hz,
        repeats=plan.repeats,
        planned=plan.trials_in(cell),
        scorers=tuple(
            ScorerRecord(name=s.name, version=s.version, weights=s.weights, needs=s.needs, metrics=s.metrics)
            for s in scorers
            if s.scores(cell.task)
        ),
    )


def prompt_example(request: Request) -> str:
    """All text of a request: its system prompt, then the texts of its turns."""
    texts = [s.text for turn in request.turns for s in turn if isinstance(s, TextSegment)]
    return "\n\n".join(text for text in (request.system or "", *texts) if text)


def condition_parameters(chain: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A chain's parameters as one flat map: `{"snr_db": 10}`; of two steps with one parameter the last counts."""
    return {key: value for step in chain for key, value in step.items() if not key.startswith("_")}


def reply_row(plan: Plan, trial: Trial, outcome: Outcome) -> dict[str, Any]:
    """One row of the store's replies: the trial, its cell and item, and what came of it."""
    cell, item, reply = plan.by_id[trial.cell_id], plan.item_of(trial), outcome.reply
    return {
        **_asked_columns(plan, trial, cell, item),
        "condition_drawn": dict(outcome.condition_drawn),
        "text": reply.text,
        "speech_uri": outcome.speech_uri,
        "speech_seconds": outcome.speech_seconds,
        "heard_seconds": outcome.heard_seconds,
        "truncated": reply.truncated,
        "events": [asdict(event) for event in reply.events],
        "tokens_in": reply.tokens_in,
        "tokens_out": reply.tokens_out,
        "seconds": outcome.seconds,
        "batch_size": outcome.batch_size,
        "worker": outcome.worker,
        "started_at": outcome.started_at,
        "environment": outcome.environment,
        "failure_kind": reply.failure.kind if reply.failure else None,
        "failure_message": reply.failure.message if reply.failure else None,
    }


def _asked_columns(plan: Plan, trial: Trial, cell: Cell, item: Item) -> dict[str, Any]:
    return {
        "trial_id": trial.trial_id,
        "attempt": trial.attempt,
        "turn": 0,
        "sweep_id": plan.sweep_id,
        "cell_id": cell.cell_id,
        "checkpoint": cell.model.checkpoint,
        "model": cell.model.name,
        "benchmark": cell.benchmark,
        "task": cell.task,
        "item_key": item.key,
        "unit": item.unit,
        "pair_id": item.pair_id,
        "factors": dict(item.factors),
        "prompt": cell.prompt.name,
        "condition": cell.condition.name,
        "condition_seed": trial.condition_seed,
        "sampling_seed": trial.request.seed,
        "arm": dict(cell.arm),
        "repeat": trial.repeat,
        "replicate": plan.replicate,
    }


def score_id(
    trial_id: str, attempt: int, turn: int, scorer: ScorerRecord | ScorerSpec, name: str, gold: str
) -> str:
    """Identity of one score: reply key, scorer with version and weights, gold digest, and the score's name."""
    key = [trial_id, attempt, turn, scorer.name, scorer.version, scorer.weights, gold, name]
    return ids.digest(key)[: ids.ID_DIGITS]
