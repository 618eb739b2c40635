"""Tests new checkpoints against a baseline: discover, subtract what is tested, sweep, compare, tell.

Invariant: idempotent; what was tested is known from the result store alone, by the checkpoint's bytes and the suite's
hash. A changed suite tests the baseline again before it compares. Exit status: a sweep's 1, 2, 3 pass through; else 4
worse, 6 environment or judge changed, 5 inconclusive, 0 otherwise: the gravest of all checkpoints.

    python jobs/retest.py retest=cascade_folder retest.source.folder=/data/checkpoints 'task=[echomind.asr]'
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from farm.store import Store, StoreError
from farm.verdict import EXIT_STATUS, GRAVEST, Verdict, overall
from jobs import comparison, config, sweep, telling
from jobs.discover import Candidate, discover

config.register_resolvers()

SETTINGS = (
    "name",
    "source",
    "model",
    "parts",
    "margins",
    "baseline",
    "canary_items",
    "out",
    "webhook",
    "watch_s",
)
FOLDER = "retests"
"""Of the result store: a JSON a checkpoint and suite."""


class SweepFailed(Exception):
    """A sweep ended with a status of its own, which is passed through."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the sweep ended with status {status}")
        self.status = status


@dataclass(frozen=True)
class Retest:
    """One configured retest."""

    composed: DictConfig
    settings: Mapping[str, Any]
    store: Store
    console: Console

    def prepare(self, candidate: Candidate, **changes: Any) -> sweep.Prepared:
        """The suite's sweep with a candidate's weights in the model."""
        chosen = self.composed.copy()
        OmegaConf.set_struct(chosen, False)
        for part, below in self.settings["parts"].items():
            key = f"models.{self.settings['model']}.adapter.{f'{part}.' if part else ''}checkpoint"
            OmegaConf.update(chosen, key, _place(candidate, below), merge=False)
        for key, value in changes.items():
            OmegaConf.update(chosen, key, value)
        return sweep.prepare(chosen)

    def run(self, prepared: sweep.Prepared) -> None:
        """Runs what the store lacks of a sweep.

        Raises:
            SweepFailed: it did not finish within its failure budget, or was stopped.
        """
        if status := sweep.run(prepared, self.store, self.console):
            raise SweepFailed(status)

    # --- what is known -----------------------------------------------------------------------------------------------

    def records(self) -> list[dict[str, Any]]:
        """Every retest of this name that the store holds, oldest first."""
        prefix = f"{FOLDER}/{self.settings['name']}/"
        found = [json.loads(self.store.get(uri)) for uri in self.store.uris(prefix.rstrip("/"))]
        return sorted(found, key=lambda record: record["at"])

    def keep(self, record: Mapping[str, Any]) -> None:
        """Remembers a retest."""
        name = f"{record['fingerprint'][:16]}.{record['suite'][:12]}.json"
        content = json.dumps(record, ensure_ascii=False, indent=1).encode()
        self.store.put(f"{FOLDER}/{self.settings['name']}/{name}", content)

    def baseline(self, suite: str) -> Candidate | None:
        """What new checkpoints are held against; None where there is none yet. It is tested on a new suite first."""
        known = self.records()
        fit = [r for r in known if r["role"] == "baseline" or self._promoted(r)]
        if not fit:
            return None
        chosen = fit[-1] if self.settings["baseline"] == "last" else fit[0]
        baseline = Candidate(
            name=chosen["candidate"],
            fingerprint=chosen["fingerprint"],
            place=chosen["place"],
            step=chosen["step"],
        )
        if not any(r["fingerprint"] == baseline.fingerprint and r["suite"] == suite for r in known):
            self.console.print(f"the suite is new: {baseline.name}, the baseline, is tested on it first")
            self.first(baseline)
        return baseline

    def _promoted(self, record: Mapping[str, Any]) -> bool:
        return self.settings["baseline"] == "last" and record["verdict"] in ("better", "no difference")

    # --- testing -----------------------------------------------------------------------------------------------------

    def test(self, candidate: Candidate) -> dict[str, Any] | None:
        """One checkpoint; None where it is tested already."""
        prepared = self.prepare(candidate)
        suite = comparison.suite_hash(prepared.sweep, prepared.plan)
        tested = {(r["fingerprint"], r["suite"]) for r in self.records()}
        if (candidate.fingerprint, suite) in tested:
            return None
        baseline = self.baseline(suite)
        if baseline is None:
            return self.first(candidate)
        self.run(prepared)
        before = self.prepare(baseline)
        found = comparison.compare(
            self.store, prepared.sweep, before.plan, prepared.plan, self.settings["margins"]
        )
        found += self.canary(baseline, before, candidate)
        record = {
            **_told(self, candidate, suite, "candidate", baseline.name),
            "verdict": overall(found),
            "verdicts": [_flat(v) for v in found],
            "slices": comparison.slices(self.store, prepared.sweep, before.plan, prepared.plan),
        }
        self.keep(record)
        return record

    def first(self, candidate: Candidate) -> dict[str, Any]:
        """A checkpoint that others will be held against."""
        prepared = self.prepare(candidate)
        self.run(prepared)
        suite = comparison.suite_hash(prepared.sweep, prepared.plan)
        told = _told(self, candidate, suite, "baseline", "")
        record = {**told, "verdict": "no difference", "verdicts": [], "slices": []}
        self.keep(record)
        return record

    def canary(self, baseline: Candidate, before: sweep.Prepared, candidate: Candidate) -> list[Verdict]:
        """Some of the baseline's trials once more: what they say now against what they said then."""
        items = self.settings["canary_items"]
        if not items:
            return []
        name = f"canary-{candidate.fingerprint[:8]}"
        again = self.prepare(baseline, replicate=name, limit=items)
        self.run(again)
        return comparison.canary(self.store, before.sweep, before.plan, again.plan, self.settings["margins"])


def _place(candidate: Candidate, below: str) -> dict[str, Any]:
    if "path" in candidate.place:
        return {"path": str(Path(candidate.place["path"]) / below) if below else candidate.place["path"]}
    return dict(candidate.place)


def _told(retest: Retest, candidate: Candidate, suite: str, role: str, baseline: str) -> dict[str, Any]:
    return {
        "name": retest.settings["name"],
        "model": retest.settings["model"],
        "candidate": candidate.name,
        "fingerprint": candidate.fingerprint,
        "place": dict(candidate.place),
        "step": candidate.step,
        "suite": suite,
        "role": role,
        "baseline": baseline,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _flat(verdict: Verdict) -> dict[str, Any]:
    c = verdict.contrast
    numbers = {} if c is None else {"difference": c.difference, "ci_low": c.ci_low, "ci_high": c.ci_high, "p": c.p,
                                    "units": c.units}  # fmt: skip
    return {
        "cell": verdict.cell,
        "metric": verdict.metric,
        "kind": verdict.kind,
        "reason": verdict.reason,
        **numbers,
    }


def tell(retest: Retest, record: Mapping[str, Any]) -> None:
    """Prints, writes files, shows the run in MLflow, posts to the webhook."""
    from jobs.tracked import SPOOL
    from tracking.tracker import TrackingOptions, open_tracker

    path = telling.write(Path(str(retest.settings["out"])).expanduser(), record)
    retest.console.print(telling.markdown(record), highlight=False, markup=False)
    retest.console.print(f"{path}", soft_wrap=True, highlight=False)
    chosen = config.plain(retest.composed)
    tracker = open_tracker(TrackingOptions(**chosen["tracking"]), SPOOL)
    tracker.finish_retest(record, str(chosen["task"][0]).split(".")[0], telling.files(record))
    tracker.close()
    if retest.settings["webhook"] and (problem := telling.post(str(retest.settings["webhook"]), record)):
        retest.console.print(problem, highlight=False, markup=False)


def look(retest: Retest) -> Iterator[dict[str, Any]]:
    """Tests every checkpoint that is there and was not tested; yields what was found.

    Raises:
        ValueError: the source or the configuration is wrong.
        SweepFailed: a sweep had a status of its own.
    """
    found = discover(retest.settings["source"])
    for why in found.waiting:
        retest.console.print(f"not ready: {why}", highlight=False, markup=False)
    for candidate in found.candidates:
        record = retest.test(candidate)
        if record is None:
            retest.console.print(f"{candidate.name}: tested already", highlight=False)
            continue
        tell(retest, record)
        yield record


def exit_status(records: list[dict[str, Any]]) -> int:
    """Of the gravest verdict."""
    kinds = {record["verdict"] for record in records}
    return next((EXIT_STATUS[kind] for kind in GRAVEST if kind in kinds), 0)


def settings(composed: DictConfig) -> dict[str, Any]:
    """The chosen retest.

    Raises:
        ValueError: none is chosen, or a setting is missing, unknown or wrong.
    """
    chosen = config.plain(composed).get("retest")
    offered = sorted(path.stem for path in (config.ROOT / "conf" / "retest").glob("*.yaml"))
    if not chosen:
        raise ValueError(f"retest=NAME: one of {', '.join(offered)}, or a file of your own in conf/retest/")
    if sorted(chosen) != sorted(SETTINGS):
        raise ValueError(f"retest: settings are {', '.join(SETTINGS)}, not {', '.join(chosen)}")
    if chosen["baseline"] not in ("first", "last"):
        raise ValueError(f"retest.baseline={chosen['baseline']}: one of first, last")
    return dict(chosen)


@hydra.main(version_base="1.3", config_path="../conf", config_name="retest")
def main(composed: DictConfig) -> None:
    """Looks once, or again and again with `retest.watch_s`."""
    console = Console()
    try:
        chosen = settings(composed)
        retest = Retest(composed, chosen, Store.open(str(composed.store)), console)
        while True:
            records = list(look(retest))
            if not chosen["watch_s"]:
                sys.exit(exit_status(records))
            time.sleep(float(chosen["watch_s"]))
    except SweepFailed as error:
        console.print(str(error), highlight=False)
        sys.exit(error.status)
    except (ValueError, StoreError) as error:
        sys.exit(sweep.refuse(error))


if __name__ == "__main__":
    main()
