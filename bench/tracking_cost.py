"""What MLflow costs: cells written into a SQLite file, and what of a sweep is spent waiting for it.

Invariant: the driver's waiting is every moment that it spends in a call of tracking, the last write included.
"""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import audio
import farm.plan
from bench.figures import Figure
from bench.standins import CLEAN, Questions, model, tone
from farm.plan import Plan, Progress, Sweep
from farm.records import CellRecord, cell_record, reply_row, score_id
from farm.store import Store
from farm.types import MetricSpec, Outcome, Prompt, Reply, ScorerSpec, Waveform
from jobs.tracked import Tracking
from tracking.projection import project
from tracking.tracker import TrackingOptions, open_tracker
from workers import engine

MODEL_S = 0.05
SCORER = ScorerSpec(
    name="quality",
    scorer={"_target_": "none"},
    version="1",
    weights="",
    metrics=(MetricSpec(name="quality/mos", aggregate="mean", better="higher"),),
    needs="text",
)
"""Its scores are made up; it is never loaded."""


def cells_per_s(*, cells: int = 200, trials: int = 50) -> list[Figure]:
    """Finished cells with scores and five speech samples each, from the store into a new SQLite file.

    MLflow's import and the creation of its tables are within the time.
    """
    with tempfile.TemporaryDirectory() as name:
        plan, store = _plan(cells, trials), Store.open(f"{name}/store")
        records = _fill(plan, store)
        tracker = open_tracker(_options(name), Path(name) / "spool")
        began_s = time.perf_counter()
        tracker.begin(records, _sweep_record(plan))
        summaries = project(store, tracker, [record.cell_id for record in records])
        tracker.finish_sweep(_sweep_record(plan), summaries)
        report = tracker.close(600)
        seconds = time.perf_counter() - began_s
    assert not report.pending and not report.problem, report
    return [Figure(name="mlflow_cells_per_s", value=cells / seconds, goal=15, better="higher")]


def waiting_share(*, cells: int = 8, trials: int = 150) -> list[Figure]:
    """A sweep of one worker of a 50 ms model, shown in MLflow while it runs and whole at its end."""
    with tempfile.TemporaryDirectory() as name:
        plan, store = _plan(cells, trials), Store.open(f"{name}/store")
        records = _put_records(plan, store)
        began_s = time.perf_counter()
        tracker = open_tracker(_options(name), Path(name) / "spool")
        tracking = _Timed(Tracking(tracker, store, records))
        tracking.timed(tracker.begin, records, _sweep_record(plan))
        models = tuple({cell.model.name: cell.model for cell in plan.cells}.values())
        summary = engine.run(plan, models, (), store, Progress(), on_kept=tracking.kept)
        tracking.timed(tracking.inner.show, _sweep_record(plan), Console(file=io.StringIO()))
        seconds = time.perf_counter() - began_s
    assert summary.done == plan.trials, summary
    share = 100 * tracking.seconds / seconds
    return [Figure(name="sweep_waiting_for_mlflow_percent", value=share, goal=2, better="lower")]


class _Timed:
    """Adds up the time that the driver spends in tracking."""

    def __init__(self, inner: Tracking) -> None:
        self.inner = inner
        self.seconds = 0.0

    def kept(self, rows: Sequence[Any]) -> None:
        self.timed(self.inner.kept, rows)

    def timed(self, call: Any, *arguments: Any) -> None:
        began_s = time.perf_counter()
        call(*arguments)
        self.seconds += time.perf_counter() - began_s


def _options(folder: str) -> TrackingOptions:
    return TrackingOptions(uri=f"sqlite:///{folder}/mlflow.db")


def _sweep_record(plan: Plan) -> dict[str, Any]:
    return {"sweep_id": plan.sweep_id, "trials": plan.trials}


def _plan(cells: int, trials: int) -> Plan:
    return farm.plan.make(
        Sweep(
            models=(model(seconds=MODEL_S),),
            tasks=(Questions(count=trials),),
            prompts=tuple(Prompt(name=f"p{n}", strength="basic") for n in range(cells)),
            conditions=(CLEAN,),
            scorers=(SCORER,),
        )
    )


def _put_records(plan: Plan, store: Store) -> list[CellRecord]:
    records = [cell_record(plan, cell, (SCORER,)) for cell in plan.cells]
    for record in records:
        store.put(record.uri, record.dump())
    return records


def _fill(plan: Plan, store: Store) -> list[CellRecord]:
    """A reply with one score per trial; all share one speech file."""
    speech = store.speech_uri("shared", 1, 0)
    store.put(speech, audio.encode_flac(Waveform(samples=tone(2.0), sample_rate_hz=16_000)))
    for number, trial in enumerate(plan.todo(plan.cells[0].model, Progress())):
        outcome = Outcome(
            trial_id=trial.trial_id,
            attempt=1,
            reply=Reply(text="I am sorry to hear that."),
            speech_uri=speech,
            speech_seconds=2.0,
            heard_seconds=3.0,
            seconds=0.5,
            batch_size=8,
            started_at="2026-01-01T00:00:00.000+00:00",
        )
        store.append_replies([reply_row(plan, trial, outcome)])
        store.append_scores([_score(plan, trial.trial_id, trial.cell_id, 1 + number % 40 / 10)])
        store.flush()
    store.flush(force=True)
    return _put_records(plan, store)


def _score(plan: Plan, trial_id: str, cell_id: str, value: float) -> dict[str, Any]:
    name = SCORER.metrics[0].name
    return {
        "score_id": score_id(trial_id, 1, 0, SCORER, name, ""),
        "trial_id": trial_id,
        "attempt": 1,
        "turn": 0,
        "cell_id": cell_id,
        "benchmark": plan.by_id[cell_id].benchmark,
        "scorer": SCORER.name,
        "scorer_version": SCORER.version,
        "rater": SCORER.name,
        "rater_kind": "program",
        "name": name,
        "value": value,
        "status": "ok",
        "reason": "",
    }
