"""Rebuilds every MLflow run from a result store alone, and prints the leaderboard.

Invariant: runs are found again and updated, never doubled. Exit status: 0 all is in MLflow, 2 no result store there,
3 MLflow did not take everything (the rest waits in the spool for the next run).

    python jobs/track.py store=PATH [tracking=server]
"""

from __future__ import annotations

import sys
from pathlib import Path

import hydra
from omegaconf import DictConfig
from rich.console import Console

from farm.metrics import CellSummary
from farm.store import Store, StoreError
from jobs import config
from tracking import leaderboard
from tracking.projection import project
from tracking.tracker import Tracker, TrackerReport, TrackingOptions, open_tracker

config.register_resolvers()


def rebuild(store: Store, tracker: Tracker) -> list[CellSummary]:
    """Every cell's run, and the summary run of every sweep that was the last to plan a cell."""
    summaries = project(store, tracker)
    for sweep_id in dict.fromkeys(s.record.sweep_id for s in summaries):
        chosen = [s for s in summaries if s.record.sweep_id == sweep_id]
        tracker.finish_sweep({"sweep_id": sweep_id}, chosen)
    return summaries


def report(summaries: list[CellSummary], result: TrackerReport, console: Console) -> int:
    """Prints what was rebuilt; returns the exit status."""
    leaderboard.render(leaderboard.rows(summaries), console)
    cells = len({s.record.cell_id for s in summaries})
    console.print(f"{cells} cells of the store, {result.runs} runs written to MLflow", highlight=False)
    for link in result.links:
        console.print(link, soft_wrap=True, highlight=False)
    if result.pending or result.rejected:
        counts = f"{result.pending} updates wait in the spool, {result.rejected} were refused"
        print(f"{counts}: {result.problem or 'time is up'}", file=sys.stderr)
        return 3
    return 0


@hydra.main(version_base="1.3", config_path="../conf", config_name="track")
def main(composed: DictConfig) -> None:
    """Reads the store, writes MLflow."""
    chosen = config.plain(composed)
    try:
        store = Store.open(str(chosen["store"]), create=False)
        tracker = open_tracker(TrackingOptions(**chosen["tracking"]), Path(config.ROOT / "outputs" / "spool"))
        summaries = rebuild(store, tracker)
    except (StoreError, ValueError) as error:
        sys.exit(_refused(str(error)))
    sys.exit(report(summaries, tracker.close(chosen["timeout_s"]), Console()))


def _refused(message: str) -> int:
    print(message, file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
