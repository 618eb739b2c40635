"""Ctrl-C and SIGTERM: once drains what is in flight and keeps it, twice stops now.

Invariant: the first signal never raises, so no result is lost between an answer and the store.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from workers.stop import StopFlag


class Signals:
    """What was signalled, and the flag that the engine watches."""

    def __init__(self) -> None:
        self.stop = StopFlag()
        self.status = 0
        """130 after Ctrl-C, 143 after SIGTERM, else 0."""

    def receive(self, number: int, frame: FrameType | None) -> None:
        """The handler of both signals."""
        if self.status:
            self.stop.now()
            return
        self.status = 128 + number
        self.stop.drain()
        print("\nstopping: keeping what is in flight (once more: stop now)", file=sys.stderr, flush=True)


@contextmanager
def stop_on_signals() -> Iterator[Signals]:
    """Watches Ctrl-C and SIGTERM within the block; the handlers from before come back after it."""
    signals = Signals()
    before = {number: signal.signal(number, signals.receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
