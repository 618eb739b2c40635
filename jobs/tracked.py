"""A sweep's results shown while it runs: running means as rows become durable, whole cells at the end.

Invariant: what is shown comes from rows that are in the result store already; an MLflow that is away or slow costs the
sweep nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from farm.records import CellRecord
from farm.store import Store
from jobs.config import ROOT
from tracking import leaderboard
from tracking.projection import project
from tracking.tracker import Tracker, TrackingOptions, open_tracker

SPOOL = ROOT / "outputs" / "spool"
CLOSE_TIMEOUT_S = 60.0


@dataclass(slots=True)
class Running:
    """Running means of one cell."""

    done: int = 0
    failed: int = 0
    sums: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Metric name -> sum of values (numerators), and of ones (denominators)."""

    def add(self, score: Mapping[str, Any]) -> None:
        """One more score row; an unparsed answer is a wrong one, what could not be scored is left out."""
        if score["status"] == "unparsed":
            value, weight = 0.0, 1.0
        elif score["denominator"] is not None:
            value, weight = score["numerator"], score["denominator"]
        elif score["value"] is not None:
            value, weight = score["value"], 1.0
        else:
            return
        total, weights = self.sums.get(score["name"], (0.0, 0.0))
        self.sums[score["name"]] = (total + value, weights + weight)

    def means(self) -> dict[str, float]:
        """Metric name -> mean (or ratio) so far."""
        progress = {"progress/done": float(self.done), "progress/failed": float(self.failed)}
        return progress | {name: total / weights for name, (total, weights) in self.sums.items() if weights}


class Tracking:
    """Receives the rows that became durable and passes running means on."""

    def __init__(self, tracker: Tracker, store: Store, records: Sequence[CellRecord]) -> None:
        self._tracker = tracker
        self._store = store
        self._records = records
        self._running = {record.cell_id: Running() for record in records}

    def kept(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Reply rows that are in the store now."""
        for row in rows:
            running = self._running[row["cell_id"]]
            running.failed += row["failure_kind"] is not None
            running.done += row["failure_kind"] is None
        self._show(rows)

    def scored(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Score rows that are in the store now."""
        for row in rows:
            self._running[row["cell_id"]].add(row)
        self._show(rows)

    def show(self, sweep: Mapping[str, Any], console: Console) -> None:
        """Writes every cell as it is in the store, prints the leaderboard and where to see more."""
        summaries = project(self._store, self._tracker, [record.cell_id for record in self._records])
        self._tracker.finish_sweep(sweep, summaries)
        leaderboard.render(leaderboard.rows(summaries), console)
        report = self._tracker.close(CLOSE_TIMEOUT_S)
        for link in report.links:
            console.print(f"MLflow: {link}  (make ui)", soft_wrap=True, highlight=False)
        if report.pending or report.problem:
            waiting = f"{report.pending} updates wait on disk for the next sweep or `python jobs/track.py`"
            console.print(f"MLflow took not everything: {report.problem}; {waiting}", highlight=False)

    def _show(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for cell_id in dict.fromkeys(row["cell_id"] for row in rows):
            running = self._running[cell_id]
            self._tracker.progress(cell_id, running.means(), step=running.done + running.failed)


@contextmanager
def tracked(
    options: Mapping[str, Any], store: Store, records: Sequence[CellRecord], sweep: Mapping[str, Any]
) -> Iterator[Tracking]:
    """Remembers the cells in the store and shows them as running."""
    for record in records:
        store.put(record.uri, record.dump())
    tracker = open_tracker(TrackingOptions(**options), SPOOL)
    try:
        tracker.begin(records, sweep)
        yield Tracking(tracker, store, records)
    finally:
        tracker.close(CLOSE_TIMEOUT_S)
