"""What the engine says of itself: one status a stage while it runs, one summary at the end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

RATE_WINDOW_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStatus:
    """One model answering, or one scorer scoring."""

    stage: Literal["answer", "score"]
    name: str
    planned: int
    """Trials, or replies to score as far as is known."""
    done: int
    """Durable in this run, failures too."""
    failed: int
    skipped: int
    """Done by earlier runs."""
    in_flight: int
    workers_ready: int
    state: str
    """`waiting`, `loading`, `running`, `done`, or `failed: reason`."""
    rate_per_s: float | None
    eta_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a run came to."""

    planned: int
    """Trials of the plan."""
    done: int
    """Trials that got a reply in this run."""
    failed: int
    """Trials that failed in this run."""
    failures: Mapping[str, Mapping[str, int]]
    """Model -> failure kind -> trials."""
    skipped: int
    """Trials done by earlier runs."""
    scored: int
    """Replies scored in this run, a scorer each."""
    stopped: bool
    """Asked to stop before all was done."""
    seconds: float
    waits: Mapping[str, float]
    """Seconds of the driver's loop by what it waited for: `workers`, `store`, `shown` (what was handed the rows)."""


@dataclass(slots=True)
class Meter:
    """Counts of one stage, and its rate over the last half minute."""

    done: int = 0
    failed: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    _marks: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, kinds: list[str | None]) -> None:
        """Counts finished items: their failure kinds, None for good ones."""
        self.done += len(kinds)
        for kind in kinds:
            if kind is not None:
                self.failed += 1
                self.failures[kind] = self.failures.get(kind, 0) + 1
        now_s = time.monotonic()
        self._marks.append((now_s, self.done))
        while self._marks[0][0] < now_s - RATE_WINDOW_S:
            self._marks.popleft()

    @property
    def rate_per_s(self) -> float | None:
        """Items a second since the oldest mark; None before there are two."""
        if len(self._marks) < 2:
            return None
        began_s, before = self._marks[0]
        seconds = time.monotonic() - began_s
        return (self.done - before) / seconds if seconds > 0 else None

    def eta_s(self, left: int) -> float | None:
        """Seconds until `left` more are done at the present rate."""
        rate = self.rate_per_s
        return left / rate if rate else None
