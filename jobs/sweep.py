"""The main job: every chosen model over a spoken benchmark, replies and scores into the result store and MLflow.

Invariant: the same command again runs only what is missing. Exit status: 0 finished within the failure budget, 1 refused by
Hydra, 2 a wrong configuration or data folder (nothing was loaded), 3 finished beyond the budget or stopped by the store,
130/143 stopped by Ctrl-C/SIGTERM.

    python jobs/sweep.py 'model=[cascade_cpu]' 'prompt=[p1,p2,p3]' 'condition=[clean,white_10db]' repeats=2
"""

from __future__ import annotations

import sys
from typing import Any

import hydra
from omegaconf import DictConfig

import farm.plan
from farm.lease import hold
from farm.plan import Plan, Sweep
from farm.records import cell_record
from farm.store import Store, StoreError
from jobs import config, dry_run, progress
from jobs.signals import stop_on_signals

config.register_resolvers()


def run(chosen: dict[str, Any], sweep: Sweep, plan: Plan, store: Store) -> int:
    """Runs a planned sweep; returns the exit status."""
    from jobs.tracked import tracked
    from workers import engine
    from workers.cluster import connect

    records = [cell_record(plan, cell, sweep.scorers) for cell in plan.cells]
    with (
        hold(store, owner="jobs/sweep.py"),
        stop_on_signals() as signals,
        tracked(chosen["tracking"], store, records) as tracking,
        connect(**chosen["cluster"]),
        progress.display() as display,
    ):
        store.sweep_orphans()
        summary = engine.run(
            plan,
            sweep.models,
            sweep.scorers,
            store,
            store_progress(store, again=chosen["rerun"] == "all"),
            again=chosen["rerun"] == "all",
            stop=signals.stop,
            on_step=display.update,
            on_kept=tracking.kept,
            on_scored=tracking.scored,
        )
    tracking.show()
    return signals.status or exit_status(summary, chosen["failure_budget"])


def exit_status(summary: Any, failure_budget: float) -> int:
    """0 within the failure budget (failed / planned trials), 3 beyond it."""
    return 3 if summary.failed > failure_budget * summary.planned else 0


def store_progress(store: Store, *, again: bool) -> farm.plan.Progress:
    """What the store holds of any sweep; with `again`, done trials count as attempts to be repeated."""
    return store.progress()


@hydra.main(version_base="1.3", config_path="../conf", config_name="sweep")
def main(composed: DictConfig) -> None:
    """Plans, then runs (or, with dry_run=true, only shows the plan)."""
    try:
        chosen = config.plain(composed)
        sweep = config.sweep(composed)
        plan = farm.plan.make(sweep)
        store = Store.open(chosen["store"])
        if chosen["dry_run"]:
            dry_run.show(plan, store)
            sys.exit(0)
        status = run(chosen, sweep, plan, store)
    except ValueError as error:
        sys.exit(config.refuse(error))
    except StoreError as error:
        print(f"stopped: {error}", file=sys.stderr)
        status = 3
    sys.exit(status)


if __name__ == "__main__":
    main()
