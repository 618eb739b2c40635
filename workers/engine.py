"""The engine: every model and scorer of a sweep in one loop of the driver, until each trial has an outcome.

Invariant: each trial that is to be run ends as exactly one durable row, a reply or a failure; the loop waits for
nothing but its workers, and what one model does to its workers holds up no other model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import ray

from farm.plan import Plan, Progress
from farm.store import Store
from farm.types import ModelSpec, ScorerSpec
from workers.cluster import can_grow
from workers.keeper import Keeper, Row
from workers.pool import Pool
from workers.stages import AnswerStage, ScoreStage
from workers.status import StageStatus, Summary
from workers.stop import StopFlag

__all__ = ["StageStatus", "StopFlag", "Summary", "run", "score"]

LOOK_S = 0.1
"""How long the loop waits for a result before it looks at clocks and flags."""
STEP_EVERY_S = 0.25
IDLE_S = 1.0
"""How long a pool keeps workers that have nothing to do while another pool waits for resources."""
GROWTH_S = 300.0
"""How long a cluster that others run may take to bring a node that can hold a worker."""
NODES_EVERY_S = 2.0

OnStep: TypeAlias = Callable[[Sequence[StageStatus]], None]
OnRows: TypeAlias = Callable[[Sequence[Row]], None]


def _ignore(_: Any) -> None:
    return None


def run(
    plan: Plan,
    models: Sequence[ModelSpec],
    scorers: Sequence[ScorerSpec],
    store: Store,
    progress: Progress,
    *,
    again: bool = False,
    stop: StopFlag | None = None,
    on_step: OnStep = _ignore,
    on_kept: OnRows = _ignore,
    on_scored: OnRows = _ignore,
) -> Summary:
    """Runs what is left of a plan on the cluster that this process is connected to.

    Args:
        plan: the trials.
        models: whose trials are run, side by side as the cluster allows.
        scorers: score fresh replies, and replies of earlier runs that lack their scores.
        store: takes rows; its lease is the caller's business.
        progress: what the store holds already.
        again: run done trials once more.
        stop: asks the loop to end early.
        on_step: gets the stages' statuses several times a second.
        on_kept: gets reply rows that have become durable.
        on_scored: gets score rows that have become durable.

    Raises:
        StoreError: the store cannot be written; all workers are ended, what is durable stays.
    """
    engine = _Engine(plan, store, stop or StopFlag(), on_step, on_kept, on_scored)
    engine.answering = [AnswerStage(plan, m, store, engine.keeper, progress, again) for m in models]
    engine.scoring = [ScoreStage(plan, s, store, engine.keeper) for s in scorers]
    return engine.run()


def score(
    plan: Plan,
    scorers: Sequence[ScorerSpec],
    store: Store,
    *,
    stop: StopFlag | None = None,
    on_step: OnStep = _ignore,
    on_scored: OnRows = _ignore,
) -> Summary:
    """Scores replies of a plan's cells that lack these scorers' scores; runs no model. Raises as `run`."""
    return run(plan, (), scorers, store, Progress(), stop=stop, on_step=on_step, on_scored=on_scored)


class _Engine:
    """One run's state."""

    def __init__(
        self, plan: Plan, store: Store, stop: StopFlag, on_step: OnStep, on_kept: OnRows, on_scored: OnRows
    ) -> None:
        self.keeper = Keeper(store)
        self.answering: list[AnswerStage] = []
        self.scoring: list[ScoreStage] = []
        self._plan, self._store, self._stop = plan, store, stop
        self._on_step, self._on_kept, self._on_scored = on_step, on_kept, on_scored
        self._waits = {"workers": 0.0, "store": 0.0, "shown": 0.0}
        self._next_step_s = 0.0
        self._next_nodes_s = 0.0
        self._unplaceable_since_s: dict[str, float] = {}

    @property
    def _pools(self) -> list[Pool]:
        return [*(stage.pool for stage in self.answering), *(stage.pool for stage in self.scoring)]

    def run(self) -> Summary:
        """The loop."""
        began_s = time.monotonic()
        try:
            while not self._finished():
                self._turn()
            self._flush(force=True)
            self._show(force=True)
        finally:
            for pool in self._pools:
                pool.release()
        return self._summary(time.monotonic() - began_s)

    def _finished(self) -> bool:
        if self._stop.abandoned:
            return True
        if any(not stage.pool.finished for stage in self.answering):
            return False
        if self._store.buffered:
            self._flush(force=True)
        for stage in self.scoring:
            stage.pool.open = stage.behind and not self._stop.draining
        return all(pool.finished for pool in self._pools) and not self._store.buffered

    def _turn(self) -> None:
        if self._stop.draining:
            for pool in self._pools:
                pool.open = False
                pool.drain()
        else:
            for pool in self._pools:
                pool.step()
            for stage in self.scoring:
                stage.catch_up()
            self._make_room()
            self._check_nodes()
        self._receive()
        self._flush()
        self._show()

    def _receive(self) -> None:
        asked = {ref: (pool, worker) for pool in self._pools for ref, worker in pool.refs()}
        refs = list(asked)
        with self._waiting_for("workers"):
            ready, rest = ray.wait(refs, num_returns=1, timeout=LOOK_S) if refs else ([], [])
            if ready and rest:
                ready += ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        for ref in ready:
            pool, worker = asked[ref]
            pool.receive(worker, ref)
        for pool in self._pools:
            pool.check_time()

    def _flush(self, *, force: bool = False) -> None:
        with self._waiting_for("store"):
            replies, scores = self.keeper.flush(force=force)
        for answering in self.answering:
            answering.count(replies)
        for scoring in self.scoring:
            scoring.take(replies)
            scoring.count(scores)
        with self._waiting_for("shown"):
            if replies:
                self._on_kept(replies)
            if scores:
                self._on_scored(scores)

    def _show(self, *, force: bool = False) -> None:
        if not force and time.monotonic() < self._next_step_s:
            return
        self._next_step_s = time.monotonic() + STEP_EVERY_S
        upstream = sum(stage.left for stage in self.answering)
        with self._waiting_for("shown"):
            answering = [stage.status() for stage in self.answering]
            self._on_step([*answering, *(stage.status(upstream) for stage in self.scoring)])

    @contextmanager
    def _waiting_for(self, what: str) -> Any:
        began_s = time.monotonic()
        try:
            yield
        finally:
            self._waits[what] += time.monotonic() - began_s

    # --- the cluster -------------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Workers that have nothing to do give way to pools that wait for resources."""
        now_s = time.monotonic()
        for pool in self._pools:
            idle = pool.idle_since_s is not None and now_s - pool.idle_since_s > IDLE_S
            if idle and any(other.pending for other in self._pools if other is not pool):
                pool.release()

    def _check_nodes(self) -> None:
        """Gives up pools whose workers no node of the cluster can hold."""
        now_s = time.monotonic()
        waiting = [
            pool for pool in self._pools if pool.pending and all(w.state == "pending" for w in pool.workers)
        ]
        if not waiting or now_s < self._next_nodes_s:
            return
        self._next_nodes_s = now_s + NODES_EVERY_S
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        patience_s = GROWTH_S if can_grow() else 0.0
        for pool in waiting:
            missing = _missing(pool, nodes)
            if not missing:
                self._unplaceable_since_s.pop(pool.name, None)
            elif now_s - self._unplaceable_since_s.setdefault(pool.name, now_s) >= patience_s:
                pool.give_up("load_error", missing)

    def _summary(self, seconds: float) -> Summary:
        stages = self.answering
        failed = sum(stage.meter.failed for stage in stages)
        return Summary(
            planned=sum(stage.planned for stage in stages),
            done=sum(stage.meter.done for stage in stages) - failed,
            failed=failed,
            failures={stage.name: dict(stage.meter.failures) for stage in stages},
            skipped=sum(stage.skipped for stage in stages),
            scored=sum(stage.meter.done for stage in self.scoring),
            stopped=self._stop.draining,
            seconds=seconds,
            waits=dict(self._waits),
        )


def _missing(pool: Pool, nodes: Sequence[Mapping[str, float]]) -> str:
    """What a worker asks for that no node has; empty where one could hold it."""
    options = pool.job.options
    wanted = {"CPU": options.num_cpus, "GPU": options.num_gpus}
    if any(all(node.get(name, 0) >= amount for name, amount in wanted.items()) for node in nodes):
        return ""
    asked = ", ".join(f"{amount:g} {name}" for name, amount in wanted.items() if amount)
    has = ", ".join(f"{max((node.get(name, 0) for node in nodes), default=0):g} {name}" for name in wanted)
    return f"{pool.name}: a worker asks for {asked}; the largest node of the cluster has {has}"
