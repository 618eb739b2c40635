"""The result store shown as MLflow runs: whatever is in MLflow can be rebuilt from the store by this.

Invariant: reads the store alone; the same store gives the same runs, however often it is shown.

    python jobs/track.py store=PATH
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from farm.metrics import REPLY_COLUMNS, SCORE_COLUMNS, CellSummary, named, summarise
from farm.records import CellRecord
from tracking import samples
from tracking.tracker import Tracker

CELLS_A_READ = 64
"""Cells whose rows are in memory together."""


class Results(Protocol):
    """What is read of a result store (`farm.store.Store`)."""

    def replies(
        self, *, benchmark: str | None = None, columns: Sequence[str] | None = None, cell_ids: Any = None
    ) -> pa.Table:
        """Last attempts, deduplicated."""
        ...

    def scores(
        self, *, benchmark: str | None = None, columns: Sequence[str] | None = None, cell_ids: Any = None
    ) -> pa.Table:
        """Deduplicated."""
        ...

    def get(self, uri: str) -> bytes:
        """A file's bytes."""
        ...


def project(store: Results, tracker: Tracker, cell_ids: Sequence[str] | None = None) -> list[CellSummary]:
    """Shows cells of the store as MLflow runs and returns their metrics; works, showing nothing, with tracking off.

    Args:
        store: the results.
        tracker: takes the runs.
        cell_ids: which cells, in this order; None: every cell of the store, sorted by what tells them apart.
    """
    with tracker.timed():
        wanted = all_cells(store) if cell_ids is None else list(cell_ids)
        return [summary for group in _groups(wanted) for summary in _project(store, tracker, group)]


def all_cells(store: Results) -> list[str]:
    """Every cell that has replies, by benchmark, task, model, prompt and condition."""
    found = pc.unique(store.replies(columns=["cell_id"])["cell_id"]).to_pylist()
    return sorted(found, key=lambda cell_id: _order(load_record(store, cell_id)))


def load_record(store: Results, cell_id: str) -> CellRecord:
    """The record of one cell."""
    return CellRecord.load(store.get(f"cells/{cell_id}.json"))


def _order(record: CellRecord) -> tuple[str, ...]:
    return record.benchmark, record.task, record.model, record.prompt, record.condition, record.cell_id


def _groups(cell_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(cell_ids), CELLS_A_READ):
        yield cell_ids[start : start + CELLS_A_READ]


def _project(store: Results, tracker: Tracker, cell_ids: Sequence[str]) -> Iterator[CellSummary]:
    replies = store.replies(columns=REPLY_COLUMNS, cell_ids=cell_ids)
    scores = store.scores(columns=SCORE_COLUMNS, cell_ids=cell_ids)
    for cell_id in cell_ids:
        record = load_record(store, cell_id)
        own_replies = replies.filter(pc.equal(replies["cell_id"], cell_id))
        own_scores = scores.filter(pc.equal(scores["cell_id"], cell_id))
        summaries = summarise(record, own_replies, own_scores)
        if tracker.enabled:
            _show(store, tracker, summaries, own_replies.to_pylist(), own_scores.to_pylist())
        yield from summaries


def _show(
    store: Results, tracker: Tracker, summaries: Sequence[CellSummary], replies: list[Any], scores: list[Any]
) -> None:
    record = summaries[0].record
    rows = samples.item_rows(record, replies, scores)
    metrics = [metric for s in summaries for metric in named(s)]
    speech = samples.worst_speech(record, rows, tracker.worst_samples, store.get)
    tracker.finish_cell(record, metrics, rows, speech)
