"""The progress display of a sweep: a table that redraws itself on a terminal, plain lines elsewhere.

Invariant: it only shows; a display that cannot be drawn changes nothing in a sweep.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.table import Table

if TYPE_CHECKING:
    from workers.engine import StageStatus

PLAIN_LINE_EVERY_S = 10.0
REDRAW_EVERY_S = 0.25


class Display:
    """Shows per model and scorer: done, failed, rate and time left."""

    def __init__(self, console: Console, live: Live | None) -> None:
        self._console = console
        self._live = live
        self._next_s = 0.0
        self._states: tuple[tuple[str, str, str], ...] = ()
        self._printed: dict[tuple[str, str], str] = {}

    def update(self, stages: Sequence[StageStatus]) -> None:
        """Draws the stages as they are now, not more often than an eye can follow."""
        states = tuple((s.stage, s.name, s.state) for s in stages)
        if states == self._states and time.monotonic() < self._next_s:
            return
        self._states = states
        if self._live:
            self._live.update(table(stages))
            self._next_s = time.monotonic() + REDRAW_EVERY_S
        else:
            self._print_changed(stages)
            self._next_s = time.monotonic() + PLAIN_LINE_EVERY_S

    def _print_changed(self, stages: Sequence[StageStatus]) -> None:
        for stage in stages:
            what = f"{stage.done} {stage.failed} {stage.planned} {stage.state}"
            if self._printed.get((stage.stage, stage.name)) != what:
                self._printed[stage.stage, stage.name] = what
                self._console.print(line(stage), soft_wrap=True, highlight=False, markup=False)


@contextmanager
def display(console: Console | None = None) -> Iterator[Display]:
    """The display of one sweep; on a terminal its last state stays on the screen."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield Display(console, None)
        return
    with Live(console=console, refresh_per_second=4) as live:
        yield Display(console, live)


def table(stages: Sequence[StageStatus]) -> Table:
    """The stages as a table, one row each."""
    drawn = Table(box=None, pad_edge=False)
    for heading in ("stage", "name", "state"):
        drawn.add_column(heading)
    for heading in ("done", "failed", "in flight", "per s", "left"):
        drawn.add_column(heading, justify="right")
    for s in stages:
        done = f"{s.done + s.skipped}/{s.planned}"
        drawn.add_row(
            s.stage,
            s.name,
            s.state,
            done,
            str(s.failed),
            str(s.in_flight),
            _rate(s.rate_per_s),
            _time(s.eta_s),
        )
    return drawn


def line(stage: StageStatus) -> str:
    """One stage as a plain line."""
    return (
        f"{stage.stage} {stage.name}: {stage.done + stage.skipped}/{stage.planned} done, {stage.failed} failed, "
        f"{_rate(stage.rate_per_s)}/s, {_time(stage.eta_s)} left ({stage.state})"
    )


def _rate(per_s: float | None) -> str:
    return "-" if per_s is None else f"{per_s:.2f}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
