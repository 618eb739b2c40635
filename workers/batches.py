"""Batches: how items are dealt out on the driver, and how a worker gets one result per item out of a batch.

Invariant: every input has exactly one result; only the item that is at fault fails. Knows nothing of Ray.
"""

from __future__ import annotations

import gc
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar

from farm.types import Failure

In = TypeVar("In")
Out = TypeVar("Out")

TRACEBACK_LINES = 6
"""Lines of a traceback that go into a failure's message; the worker's log has all of it."""
MESSAGE_CHARACTERS = 1500

_DEAD_DEVICE = (
    "device-side assert",
    "illegal memory access",
    "unspecified launch failure",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "CUBLAS_STATUS_EXECUTION_FAILED",
    "CUDNN_STATUS_NOT_INITIALIZED",
    "CUDNN_STATUS_INTERNAL_ERROR",
)


@dataclass(frozen=True, slots=True)
class Done(Generic[Out]):
    """What became of one input."""

    value: Out | Failure
    seconds: float
    """Its share of the wall time of the batch that it was in."""
    batch_size: int
    started_at: str
    """ISO 8601, UTC."""


@dataclass(slots=True)
class Answers(Generic[Out]):
    """What became of a batch."""

    limit: int
    """Items that fit at once: smaller than before where the memory was too small."""
    done: list[Done[Out]] = field(default_factory=list)
    fatal: str = ""
    """Why this process can do nothing more; `done` then ends before the item at fault, or before its batch."""


def take(waiting: deque[In], most: int, most_seconds: float, seconds: Callable[[In], float]) -> list[In]:
    """Takes the next batch from the left.

    Args:
        waiting: what is to be done, neighbours of like length.
        most: items at most.
        most_seconds: padded seconds at most: the longest one's times the number of items; one item is always taken.
        seconds: length of an item's audio.
    """
    batch: list[In] = []
    longest = 0.0
    while waiting and len(batch) < most:
        longest = max(longest, seconds(waiting[0]))
        if batch and longest * (len(batch) + 1) > most_seconds:
            break
        batch.append(waiting.popleft())
    return batch


def work_through(
    inputs: Sequence[In], work: Callable[[Sequence[In]], Sequence[Out | Failure]], limit: int
) -> Answers[Out]:
    """Gets one result per input from a function that works on batches and may raise.

    Out of memory halves the batch and stays halved; any other exception makes the items of that batch run one by one,
    so that only the one at fault fails; one that leaves the device dead ends the work.

    Args:
        inputs: a batch.
        work: gives one result per input, in order.
        limit: inputs at once at most.
    """
    answers: Answers[Out] = Answers(limit=limit)
    while len(answers.done) < len(inputs) and not answers.fatal:
        batch = inputs[len(answers.done) : len(answers.done) + answers.limit]
        started_at, began_s = datetime.now(UTC).isoformat(timespec="milliseconds"), time.perf_counter()
        values, failure, fatal = _attempt(batch, work)
        share_s = (time.perf_counter() - began_s) / len(batch)
        if fatal:
            answers.fatal = fatal
        elif failure is None:
            answers.done += [Done(value, share_s, len(batch), started_at) for value in values]
        elif len(batch) == 1:
            answers.done.append(Done(failure, share_s, 1, started_at))
        elif failure.kind == "out_of_memory":
            answers.limit = len(batch) // 2
        else:
            ones = work_through(batch, work, 1)
            answers.done += ones.done
            answers.fatal = ones.fatal
    return answers


def _attempt(
    batch: Sequence[In], work: Callable[[Sequence[In]], Sequence[Out | Failure]]
) -> tuple[Sequence[Out | Failure], Failure | None, str]:
    """Results, or why there are none, or why there will be none any more."""
    try:
        values = work(batch)
    except Exception as error:  # noqa: BLE001 - model code raises anything; it becomes these trials' failure
        failure, dead = describe(error), _device_is_dead(error)
    else:
        if len(values) == len(batch):
            return values, None, ""
        message = f"{len(values)} results for {len(batch)} inputs"
        return [Failure(kind="model_error", message=message)] * len(batch), None, ""
    if failure.kind == "out_of_memory":
        # Only here is the exception gone, and with it the frames that held the batch's memory.
        release_memory()
    return [], failure, failure.message if dead else ""


def describe(error: Exception) -> Failure:
    """An exception as a failure: its type, its message and where it was raised."""
    traceback.print_exception(error)
    kind = type(error).__name__
    message = f"{kind}: {error}"[:MESSAGE_CHARACTERS]
    if is_out_of_memory(error):
        return Failure(kind="out_of_memory", message=message)
    where = "".join(traceback.format_tb(error.__traceback__)).splitlines()[-TRACEBACK_LINES:]
    return Failure(kind="model_error", message="\n".join([message, *where]))


def is_out_of_memory(error: BaseException) -> bool:
    """By the class's name, so that no library needs to be imported to know its exception."""
    names = {cls.__name__ for cls in type(error).__mro__}
    said = str(error)
    return bool(names & {"MemoryError", "OutOfMemoryError"}) or (
        isinstance(error, RuntimeError)
        and ("CUDA out of memory" in said or "CUDA error: out of memory" in said or "ALLOC_FAILED" in said)
    )


def _device_is_dead(error: BaseException) -> bool:
    """Errors after which every later call on the device fails too, until the process is replaced."""
    said = str(error)
    return not is_out_of_memory(error) and (
        "CUDA error:" in said
        or type(error).__name__ == "EngineDeadError"
        or any(s in said for s in _DEAD_DEVICE)
    )


def release_memory() -> None:
    """Gives back what the failed batch held; touches torch only where the model has imported it."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
