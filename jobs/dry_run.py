"""What a sweep would do: cells, trials, audio, disk, what is done already, and time from measured rates.

Invariant: loads no model and starts no Ray; a figure that was never measured is said to be unknown, not guessed.

    python jobs/sweep.py dry_run=true
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from farm.plan import Plan, Progress
from farm.store import Store
from farm.types import Cell, ModelSpec, ScorerSpec

FLAC_BYTES_PER_SAMPLE = 1.2
"""16-bit speech as FLAC; measured on synthesised replies at 22 and 24 kHz."""


@dataclass(frozen=True, slots=True)
class Rate:
    """What earlier trials of one model took, on the mean."""

    seconds: float
    speech_seconds: float


@dataclass(frozen=True, slots=True)
class ModelEstimate:
    """What one model of the sweep would do."""

    cells: int
    planned: int
    todo: int
    audio_s: float
    """Seconds of audio that it would hear."""
    busy_s: float | None
    """None where no trial of this model has been measured yet."""
    disk_bytes: float | None


def show(
    plan: Plan, models: Sequence[ModelSpec], scorers: Sequence[ScorerSpec], store_url: str, console: Console
) -> None:
    """Prints the estimate of every model and the sum; a store that is not there yet holds nothing."""
    progress, measured = _held(store_url)
    estimates = {m.name: estimate(plan, m, progress, measured.get(m.name)) for m in models}
    console.print(table(estimates))
    todo = sum(e.todo for e in estimates.values())
    console.print(
        f"sweep {plan.sweep_id}: {len(plan.cells)} cells, {plan.trials} trials, {todo} still to be run"
    )
    if any(e.busy_s is None for e in estimates.values()):
        console.print("unknown: no trial of that model has been measured in this store yet (try limit=1)")
    for note in [*notes(models), *judge_calls(plan, scorers, store_url)]:
        console.print(note, highlight=False)


def judge_calls(plan: Plan, scorers: Sequence[ScorerSpec], store_url: str) -> list[str]:
    """How often each judge would be asked: once a reply that it has not judged, once more for an unusable answer."""
    lines = []
    for spec in scorers:
        if "judge" not in spec.scorer:
            continue
        cells = [cell for cell in plan.cells if spec.scores(cell.task) and _gives(cell.model, spec.needs)]
        asked = sum(plan.trials_in(cell) for cell in cells) - _judged(spec, cells, store_url)
        limit = spec.scorer["judge"].get("max_calls")
        over = f"; max_calls={limit} leaves the rest for the next run" if limit and limit < asked else ""
        lines.append(f"{spec.name}: about {asked} calls, {2 * asked} at most{over}")
    return lines


def _gives(model: ModelSpec, needed: str) -> bool:
    return model.capabilities.speech_out if needed == "speech" else model.capabilities.text_out


def _judged(spec: ScorerSpec, cells: Sequence[Cell], store_url: str) -> int:
    if "://" not in store_url and not Path(store_url).expanduser().exists():
        return 0
    columns = ["trial_id", "scorer", "scorer_version", "name", "status"]
    rows = Store.open(store_url, create=False).scores(cell_ids=[c.cell_id for c in cells], columns=columns)
    return len(
        {
            row["trial_id"]
            for row in rows.to_pylist()
            if (row["scorer"], row["scorer_version"], row["name"])
            == (spec.name, spec.version, spec.metrics[0].name)
            and row["status"] not in ("unavailable", "judge_error")
        }
    )


def notes(models: Sequence[ModelSpec]) -> list[str]:
    """What a user should know of a model before comparing its prompts."""
    deaf = [m.name for m in models if m.capabilities.system_prompt == "none"]
    return [f"{name} takes no text: every prompt reaches it as the recording alone" for name in deaf]


def _held(store_url: str) -> tuple[Progress, Mapping[str, Rate]]:
    if "://" not in store_url and not Path(store_url).expanduser().exists():
        return Progress(), {}
    store = Store.open(store_url, create=False)
    return store.progress(), rates(store)


def rates(store: Store) -> Mapping[str, Rate]:
    """Mean seconds of work and of reply speech a trial, by model, over what the store holds."""
    table = store.replies(columns=["model", "seconds", "speech_seconds", "failure_kind"])
    table = table.filter(pc.is_null(table["failure_kind"]))
    means = table.group_by("model").aggregate([("seconds", "mean"), ("speech_seconds", "mean")]).to_pylist()
    return {m["model"]: Rate(m["seconds_mean"] or 0.0, m["speech_seconds_mean"] or 0.0) for m in means}


def estimate(plan: Plan, model: ModelSpec, progress: Progress, rate: Rate | None) -> ModelEstimate:
    """What one model would do, from its trials that are not done and its measured rate."""
    cells = [cell for cell in plan.cells if cell.model.name == model.name]
    todo, audio_s = 0, 0.0
    for trial in plan.todo(model, progress):
        todo += 1
        audio_s += trial.request.seconds
    sample_rate_hz = model.capabilities.sample_rate_hz or 0
    return ModelEstimate(
        cells=len(cells),
        planned=sum(plan.trials_in(cell) for cell in cells),
        todo=todo,
        audio_s=audio_s,
        busy_s=None if rate is None else todo * rate.seconds / model.workers.count,
        disk_bytes=None
        if rate is None
        else todo * rate.speech_seconds * sample_rate_hz * FLAC_BYTES_PER_SAMPLE,
    )


def table(estimates: Mapping[str, ModelEstimate]) -> Table:
    """The estimates, a row a model."""
    drawn = Table(box=None, pad_edge=False)
    drawn.add_column("model")
    for heading in ("cells", "trials", "done", "to run", "audio heard", "model time", "disk"):
        drawn.add_column(heading, justify="right")
    for name, e in estimates.items():
        drawn.add_row(
            name,
            str(e.cells),
            str(e.planned),
            str(e.planned - e.todo),
            str(e.todo),
            _minutes(e.audio_s),
            "unknown" if e.busy_s is None else _minutes(e.busy_s),
            "unknown" if e.disk_bytes is None else f"{e.disk_bytes / 1e6:.1f} MB",
        )
    return drawn


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
