"""The Ray actor that hosts one model or scorer: loads it once, prepares batches ahead, works on them in order.

Invariant: batches are worked on in the order of their numbers, in one thread, whatever order they were prepared in.
Everything that the process and its native code print goes to the worker's own log. The actor never restarts or retries
by itself: what a crash means is decided by the pool that owns it.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from farm.store import Store
from farm.types import Failure
from workers.batches import Answers, Done, work_through

CONCURRENT_CALLS = 4
"""Two batches, the load, and a spare for a greeting."""
SWITCH_S = 0.0005


class Body(Protocol):
    """What a host hosts; it is made on the driver and must be light until it is loaded."""

    name: str
    threads: int
    """CPU threads that prepare ahead."""
    limit: int
    """Items at once at most."""

    def load(self, worker: str) -> None:
        """Loads the model; any exception makes the worker unusable."""
        ...

    def prepare(self, item: Any) -> Any:
        """What the work needs of one item, computed ahead in threads.

        Raises:
            ValueError: the item cannot be used; the message says why.
        """
        ...

    def work(self, prepared: Sequence[Any]) -> Sequence[Any]:
        """The model's part: one result (or Failure) per input, in order."""
        ...

    def finish(self, item: Any, prepared: Any, done: Done[Any]) -> Any:
        """What the driver gets of one item; small, without audio."""
        ...


@dataclass(frozen=True, slots=True)
class Hello:
    """Where a worker lives."""

    node_id: str
    pid: int
    log: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker says of one batch."""

    results: tuple[Any, ...]
    """One per item, in order; fewer where `fatal` says why."""
    limit: int
    fatal: str = ""


class Host:
    """The actor's class; a pool turns it into one with `ray.remote`."""

    def __init__(self, body: Body, worker: str, log_folder: str | None) -> None:
        # The thread that works wakes up from the device to find others decoding: it must not wait 5 ms for its turn.
        sys.setswitchinterval(SWITCH_S)
        self._body = body
        self._worker = worker
        self._log = _to_log(log_folder, worker)
        self._limit = body.limit
        self._ahead = ThreadPoolExecutor(body.threads, thread_name_prefix="ahead")
        self._desk = ThreadPoolExecutor(1, thread_name_prefix="desk")
        self._turns = threading.Condition()
        self._turn = 0

    def hello(self) -> Hello:
        """Says where it lives, which also says that it lives."""
        import ray

        return Hello(ray.get_runtime_context().get_node_id(), os.getpid(), self._log)

    def load(self) -> Failure | None:
        """Loads the body, in the thread that will work: None, or why it could not be loaded."""
        from workers.batches import describe

        try:
            self._desk.submit(self._body.load, self._worker).result()
        except Exception as error:  # noqa: BLE001 - whatever a model's loading raises becomes its load_error
            return Failure(kind="load_error", message=describe(error).message)
        return None

    def run(self, number: int, items: Sequence[Any]) -> Report:
        """Works on one batch; called with number 0, 1, 2, ... and up to two calls at once."""
        futures = [self._ahead.submit(_prepared, self._body, item) for item in items]
        prepared = [future.result() for future in futures]
        good = [value for value in prepared if not isinstance(value, Failure)]
        with self._turns:
            self._turns.wait_for(lambda: self._turn == number)
            # Queued at the desk while the batch before is still worked on: the device waits for no other thread.
            answers = self._desk.submit(self._work, good)
            self._turn += 1
            self._turns.notify_all()
        return self._report(items, prepared, answers.result())

    def _work(self, good: Sequence[Any]) -> Answers[Any]:
        answers: Answers[Any] = work_through(good, self._body.work, self._limit)
        self._limit = answers.limit
        return answers

    def _report(self, items: Sequence[Any], prepared: Sequence[Any], answers: Answers[Any]) -> Report:
        done = iter(answers.done)
        results: list[Any] = []
        for item, value in zip(items, prepared, strict=True):
            found = Done(value, 0.0, 1, "") if isinstance(value, Failure) else next(done, None)
            if found is None:
                break
            results.append(self._body.finish(item, value, found))
        return Report(tuple(results), answers.limit, answers.fatal)


def _prepared(body: Body, item: Any) -> Any:
    try:
        return body.prepare(item)
    except ValueError as error:
        return Failure(kind="input_error", message=str(error))
    except Exception as error:  # noqa: BLE001 - a decoder may raise anything; it fails this item alone
        return Failure(kind="input_error", message=f"{type(error).__name__}: {error}")


def _to_log(folder: str | None, worker: str) -> str:
    """Sends this process's output, native code's too, to the worker's log."""
    path = Path(folder or tempfile.mkdtemp(prefix="sf-logs-")) / f"{worker}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    faulthandler.enable(file=sys.stderr)
    return str(path)


def log_folder(store: Store) -> str | None:
    """Where workers' logs belong: below a store on a file system; on an object store each worker's own machine."""
    return None if "://" in store.url else f"{store.url}/logs"
