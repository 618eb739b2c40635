"""The pool of workers of one model or scorer: a queue, and what crashes, hangs and lost nodes mean.

Invariant: every item that enters leaves exactly once, as a result or as a failure. Work goes only to workers that have
loaded. After a process dies, what it had in flight runs again item by item, alone in its worker: only a crash or a hang
of an item that runs alone is held against it.

The driver's own knowledge is the breadcrumb: a worker works on its batches in order, so what was in flight when it died
is known without asking it, on whatever node it was.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import ray

from farm.types import Failure, FailureKind, WorkerOptions
from workers.batches import take
from workers.host import CONCURRENT_CALLS, Body, Hello, Host, Report

DEPTH = 2
"""Batches in flight per worker: the second is heard while the first is answered."""
LOAD_TRIES = 2
CRASHES_IN_A_ROW = 5
"""Per worker of the pool, without a finished batch between them: then the model is at fault, not an item."""
RETURN_BATCHES = 4
"""Batches that must wait before a pool that made room takes workers again, while more work may come."""
FAILED_AT_ONCE = 2000
"""Failures handed over in one step, so that a pool of a million hopeless trials does not hold up the others."""
REASON_CHARACTERS = 600

_Actor = ray.remote(max_restarts=0, max_task_retries=0, max_concurrency=CONCURRENT_CALLS)(Host)
_names = itertools.count()
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a pool is for."""

    body: Body
    options: WorkerOptions
    log_folder: str | None
    seconds: Callable[[Any], float]
    """Length of an item's audio."""
    keep: Callable[[Sequence[Any], Sequence[Any]], None]
    """Takes items and what the worker said of them."""
    fail: Callable[[Any, Failure, str], None]
    """Takes an item that the worker could say nothing of, why, and the worker's name."""


@dataclass(slots=True)
class Batch:
    """Items in flight."""

    items: list[Any]
    alone: bool
    """One suspect, in a worker that has nothing else."""


@dataclass(slots=True, eq=False)
class Worker:
    """One actor as the driver sees it."""

    name: str
    actor: Any
    state: Literal["pending", "loading", "ready"] = "pending"
    since_s: float = 0.0
    """When its state began; of a ready one, when its oldest batch began."""
    node_id: str = ""
    log: str = ""
    dealt: int = 0
    refs: dict[Any, Batch | None] = field(default_factory=dict)
    """What it is asked, in order."""

    @property
    def batches(self) -> list[Batch]:
        """In flight, oldest first."""
        return [batch for batch in self.refs.values() if batch is not None]


class Pool:
    """Workers of one job, and its queue."""

    def __init__(self, job: Job, source: Iterator[Any]) -> None:
        self.job = job
        self.name = job.body.name
        self.limit = job.body.limit
        self.workers: list[Worker] = []
        self.waiting: deque[Any] = deque()
        self.suspects: deque[tuple[Any, str]] = deque()
        """Items that were in flight when a worker died, and how it died; they run alone."""
        self.source: Iterator[Any] | None = source
        self.open = False
        """More may come than the source gives."""
        self.released = False
        """Its workers made room for another pool; it takes new ones for a good deal of work only."""
        self.broken: Failure | None = None
        """Why nothing of this job can be done any more."""
        self.load_failures = 0
        self.crashes = 0
        """Since the last finished batch."""
        self.starts = 0
        self.idle_since_s: float | None = None

    # --- what the engine asks ---------------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """Items at workers."""
        return sum(len(batch.items) for worker in self.workers for batch in worker.batches)

    @property
    def queued(self) -> int:
        """Items that are known and not at a worker."""
        return len(self.waiting) + len(self.suspects)

    @property
    def finished(self) -> bool:
        """Nothing is left, now or later."""
        return self.source is None and not self.open and not self.queued and not self.in_flight

    @property
    def pending(self) -> bool:
        """It has work, and a worker that waits for resources."""
        return bool(self.queued) and any(worker.state == "pending" for worker in self.workers)

    def refs(self) -> Iterator[tuple[Any, Worker]]:
        """Everything that is being waited for."""
        return ((ref, worker) for worker in self.workers for ref in worker.refs)

    # --- one turn of the engine's loop -------------------------------------------------------------------------------

    def step(self) -> None:
        """Deals out work, and makes or ends workers as there is work."""
        self._fill()
        if self.broken:
            self._fail_queue(self.broken)
            return
        for worker in self.workers:
            if worker.state == "ready":
                self._deal(worker)
        for _ in range(self._short_of()):
            self._start()
        if not self.queued and self.source is None and not self.open:
            for worker in [w for w in self.workers if not w.batches]:
                self.end(worker)
        idle = bool(self.workers) and not self.queued and not self.in_flight
        self.idle_since_s = (self.idle_since_s or time.monotonic()) if idle else None

    def _short_of(self) -> int:
        """Workers to be made: as many as there are batches, up to the pool's count."""
        if self.load_failures >= LOAD_TRIES and any(worker.state == "ready" for worker in self.workers):
            return 0
        if self.released and self.open and self.queued < RETURN_BATCHES * self.limit:
            return 0
        starting = sum(worker.state != "ready" for worker in self.workers)
        batches = -(-len(self.waiting) // self.limit) + bool(self.suspects)
        return min(self.job.options.count - len(self.workers), batches - starting)

    def receive(self, worker: Worker, ref: Any) -> None:
        """Takes what has come of something that was asked of a worker."""
        if worker not in self.workers or ref not in worker.refs:
            # It has been ended since, by another answer of the same moment.
            return
        try:
            said = ray.get(ref)
        except ray.exceptions.RayError as error:
            self._lost(worker, _reason(error), on_node_loss=_node_is_lost(error))
            return
        batch = worker.refs.pop(ref)
        if isinstance(said, Hello):
            self._hello(worker, said)
        elif isinstance(said, Report):
            assert batch is not None
            self._report(worker, batch, said)
        elif isinstance(said, Failure):
            self._load_failed(worker, said.message)
        else:
            worker.state, worker.since_s = "ready", time.monotonic()
            self.load_failures = 0

    def check_time(self) -> None:
        """Kills workers that have hung."""
        now_s, options = time.monotonic(), self.job.options
        for worker in list(self.workers):
            age_s = now_s - worker.since_s
            if worker.state == "loading" and age_s > options.load_timeout_s:
                self._load_failed(worker, f"not loaded after load_timeout_s={options.load_timeout_s:g}")
            elif worker.state == "ready" and worker.refs and age_s > options.timeout_s:
                self._hung(worker)

    def drain(self) -> None:
        """Forgets what is not in flight, and ends workers that have nothing."""
        self.source = None
        self.waiting.clear()
        self.suspects.clear()
        for worker in [w for w in self.workers if not w.batches]:
            self.end(worker)

    def release(self) -> None:
        """Ends all workers, for others to take their place; new ones are made when there is work for them."""
        self.released = True
        for worker in list(self.workers):
            self.end(worker)

    def end(self, worker: Worker) -> None:
        """Ends a worker's process, whatever it is doing, and frees its resources."""
        self.workers.remove(worker)
        ray.kill(worker.actor, no_restart=True)

    def give_up(self, kind: FailureKind, message: str) -> None:
        """Fails everything that is left, with one reason."""
        self.broken = Failure(kind=kind, message=message)
        for worker in list(self.workers):
            self.waiting.extendleft(item for batch in worker.batches for item in reversed(batch.items))
            self.end(worker)
        self.waiting.extendleft(item for item, _ in self.suspects)
        self.suspects.clear()

    # --- the queue -----------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Keeps enough items at hand for every worker, and no more."""
        wanted = FAILED_AT_ONCE if self.broken else self.job.options.count * self.limit * (DEPTH + 1)
        while self.source is not None and len(self.waiting) < wanted:
            found = list(itertools.islice(self.source, wanted - len(self.waiting)))
            self.waiting.extend(found)
            if not found:
                self.source = None

    def _deal(self, worker: Worker) -> None:
        while len(worker.refs) < DEPTH and not any(batch.alone for batch in worker.batches):
            if self.suspects and not worker.refs:
                batch = Batch([self.suspects[0][0]], alone=True)
                self.suspects.popleft()
            else:
                options = self.job.options
                items = take(self.waiting, self.limit, options.max_batch_audio_s, self.job.seconds)
                batch = Batch(items, alone=False)
            if not batch.items:
                return
            if not worker.refs:
                worker.since_s = time.monotonic()
            worker.refs[worker.actor.run.remote(worker.dealt, batch.items)] = batch
            worker.dealt += 1

    def _fail_queue(self, failure: Failure) -> None:
        for _ in range(min(FAILED_AT_ONCE, len(self.waiting))):
            self.job.fail(self.waiting.popleft(), failure, "")

    # --- a worker's life -----------------------------------------------------------------------------------------

    def _start(self) -> None:
        options = self.job.options
        runtime_env: dict[str, Any] = {}
        if options.env_vars:
            runtime_env["env_vars"] = dict(options.env_vars)
        if options.py_executable:
            runtime_env["py_executable"] = options.py_executable
        name = f"{self.name}-{time.strftime('%Y%m%dT%H%M%S')}-{next(_names)}"
        actor = _Actor.options(
            num_cpus=options.num_cpus, num_gpus=options.num_gpus, runtime_env=runtime_env or None
        ).remote(self.job.body, name, self.job.log_folder)
        worker = Worker(name=name, actor=actor, since_s=time.monotonic())
        worker.refs[actor.hello.remote()] = None
        self.workers.append(worker)
        self.released = False
        self.starts += 1

    def _hello(self, worker: Worker, hello: Hello) -> None:
        worker.node_id, worker.log = hello.node_id, hello.log
        worker.state, worker.since_s = "loading", time.monotonic()
        worker.refs[worker.actor.load.remote()] = None

    def _report(self, worker: Worker, batch: Batch, report: Report) -> None:
        worker.since_s = time.monotonic()
        self.limit = min(self.limit, max(1, report.limit))
        done = batch.items[: len(report.results)]
        self.job.keep(done, report.results)
        if not report.fatal:
            self.crashes = 0
            return
        rest = Batch(batch.items[len(done) :], batch.alone)
        self._replace(worker, [rest], worker.batches, "worker_crash", report.fatal)

    def _load_failed(self, worker: Worker, reason: str) -> None:
        _logger.info("%s was not loaded: %s", worker.name, reason)
        self.end(worker)
        self.load_failures += 1
        if self.load_failures >= LOAD_TRIES and not any(w.state == "ready" for w in self.workers):
            self.give_up("load_error", f"{reason}{_log(worker)}")

    def _lost(self, worker: Worker, reason: str, *, on_node_loss: bool) -> None:
        """The worker's process is gone."""
        if worker.state != "ready" and not on_node_loss:
            self._load_failed(worker, reason)
            return
        if on_node_loss:
            self._replace(worker, [], worker.batches, "worker_crash", reason)
        else:
            self._replace(worker, worker.batches, [], "worker_crash", reason)

    def _hung(self, worker: Worker) -> None:
        first, *others = worker.batches
        reason = f"no result after timeout_s={self.job.options.timeout_s:g}"
        self._replace(worker, [first], others, "timeout", reason)

    def _replace(
        self,
        worker: Worker,
        suspected: Sequence[Batch],
        innocent: Sequence[Batch],
        kind: FailureKind,
        reason: str,
    ) -> None:
        """Ends a worker that is of no use any more; what it had in flight runs again or has failed."""
        _logger.info("%s is replaced: %s", worker.name, reason)
        self.end(worker)
        self.crashes += 1
        reason = reason + _log(worker)
        for batch in reversed(innocent):
            if batch.alone:
                self.suspects.extendleft((item, reason) for item in batch.items)
            else:
                self.waiting.extendleft(reversed(batch.items))
        for batch in suspected:
            if batch.alone:
                self.job.fail(batch.items[0], Failure(kind=kind, message=reason), worker.name)
            else:
                self.suspects.extend((item, reason) for item in batch.items)
        limit = CRASHES_IN_A_ROW * self.job.options.count
        if self.crashes >= limit:
            self.give_up(
                kind, f"gave up after {self.crashes} crashes in a row without a finished batch: {reason}"
            )


def _log(worker: Worker) -> str:
    return f"\nlog: {worker.log}" if worker.log else ""


def _reason(error: Exception) -> str:
    """The telling part of Ray's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith("The actor is dead") or "exit detail" in line]
    return (telling[0] if telling else " ".join(lines))[:REASON_CHARACTERS]


def _node_is_lost(error: Exception) -> bool:
    """Whether the machine went away, rather than the process: nothing that ran on it is at fault."""
    said = str(error)
    return (
        isinstance(error, ray.exceptions.ActorUnavailableError)
        or "node has died" in said
        or "node died" in said
    )
