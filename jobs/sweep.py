"""The main job: every chosen model over a spoken benchmark, replies and scores into the result store and MLflow.

Invariant: the same command again runs only what is missing. Exit status: 0 finished within the failure budget, 1
refused by Hydra, 2 a wrong configuration or data folder (nothing was loaded), 3 finished beyond the budget or stopped
by a full or lost store, 130 and 143 stopped by Ctrl-C and SIGTERM.

    python jobs/sweep.py 'model=[cascade_cpu]' 'prompt=[p1,p2,p3]' 'condition=[clean,white_10db]' repeats=2
"""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import hydra
from omegaconf import DictConfig
from rich.console import Console

import farm.plan
from farm.plan import Plan, Sweep
from jobs import config

if TYPE_CHECKING:
    from farm.store import Store
    from workers.engine import Summary

config.register_resolvers()


class Prepared(NamedTuple):
    """A sweep of which nothing has been loaded yet."""

    settings: dict[str, Any]
    sweep: Sweep
    plan: Plan


def prepare(composed: DictConfig) -> Prepared:
    """From a composed configuration to a plan.

    Raises:
        ValueError: the configuration or a data folder is wrong.
    """
    sweep = config.sweep(composed)
    return Prepared(config.plain(composed), sweep, farm.plan.make(sweep))


def run(prepared: Prepared, store: Store, console: Console) -> int:
    """Runs what the store does not hold yet, shows the leaderboard, returns the exit status."""
    from farm.lease import hold
    from farm.records import cell_record
    from jobs import dry_run, progress
    from jobs.signals import stop_on_signals
    from jobs.tracked import tracked
    from workers import engine
    from workers.cluster import connect

    settings, sweep, plan = prepared
    again = settings["rerun"] == "all"
    for note in dry_run.notes(sweep.models):
        console.print(note, highlight=False)
    records = [cell_record(plan, cell, sweep.scorers) for cell in plan.cells]
    with (
        hold(store, owner="jobs/sweep.py"),
        stop_on_signals() as signals,
        tracked(settings["tracking"], store, records, sweep_record(prepared)) as tracking,
    ):
        store.sweep_orphans()
        store.put(f"sweeps/{plan.sweep_id}.json", json.dumps(sweep_record(prepared), indent=1).encode())
        with connect(**settings["cluster"]), progress.display() as display:
            summary = engine.run(
                plan,
                sweep.models,
                sweep.scorers,
                store,
                store.progress(count_done=again),
                again=again,
                stop=signals.stop,
                on_step=display.update,
                on_kept=tracking.kept,
                on_scored=tracking.scored,
            )
        store.compact()
        tracking.show(sweep_record(prepared), console)
    report(summary, console, str(settings["store"]))
    return signals.status or exit_status(summary, settings["failure_budget"])


def sweep_record(prepared: Prepared) -> dict[str, Any]:
    """What the sweep's own MLflow run says of it."""
    settings = {k: v for k, v in prepared.settings.items() if k not in ("tracking", "cluster")}
    plan = prepared.plan
    return {"sweep_id": plan.sweep_id, "trials": plan.trials, "command": command(), "settings": settings}


def command() -> str:
    """What was typed, to be typed again; where it logs to is left out, since an address can hold a password."""
    typed = [a for a in sys.argv[1:] if not a.startswith(("tracking.", "cluster.", "hydra.run", "hydra.job"))]
    return shlex.join(["python", "jobs/sweep.py", *typed])


def report(summary: Summary, console: Console, store: str) -> None:
    """What this run did, and where failures are explained."""
    done = f"{summary.done} trials run, {summary.skipped} were done before, {summary.failed} failed"
    console.print(f"{done}; {summary.seconds:.0f} s", highlight=False)
    if summary.failed:
        where = "" if store == str(config.ROOT / "store") else f" --store {shlex.quote(store)}"
        why = f"why: python jobs/failures.py{where}; again: the same command"
        console.print(why, highlight=False, soft_wrap=True)


def exit_status(summary: Summary, failure_budget: float) -> int:
    """0 within the failure budget (failed / planned trials), 3 beyond it."""
    return 3 if summary.failed > failure_budget * summary.planned else 0


def refuse(error: Exception) -> int:
    """Says what a user got wrong, a line each; returns the exit status of that."""
    for line in str(error).splitlines():
        print(f"error: {line}", file=sys.stderr)
    return 2


@hydra.main(version_base="1.3", config_path="../conf", config_name="sweep")
def main(composed: DictConfig) -> None:
    """Plans, then runs (or, with dry_run=true, only shows the plan)."""
    # Imported once Hydra has let the configuration pass, so that --help answers at once.
    from farm.lease import StoreBusy
    from farm.store import Store, StoreError
    from jobs import dry_run

    console = Console()
    try:
        prepared = prepare(composed)
        if prepared.settings["dry_run"]:
            sweep, store_url = prepared.sweep, prepared.settings["store"]
            dry_run.show(prepared.plan, sweep.models, sweep.scorers, store_url, console)
            sys.exit(0)
        store = Store.open(prepared.settings["store"])
    except ValueError as error:
        sys.exit(refuse(error))
    from workers.cluster import NoClusterError

    try:
        sys.exit(run(prepared, store, console))
    except (StoreBusy, NoClusterError) as error:
        sys.exit(refuse(error))
    except StoreError as error:
        print(f"stopped, all that was kept is safe: {error}", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    searches_elsewhere = any(argument.startswith("hydra.searchpath=") for argument in sys.argv)
    if unknown := [] if searches_elsewhere else config.unknown_options(sys.argv[1:]):
        sys.exit("\n".join(unknown))
    main()
