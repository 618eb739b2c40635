"""How a sweep is asked to stop: once to drain, again to abandon.

Invariant: asking never raises and never blocks, so a signal handler may do it.
"""

from __future__ import annotations


class StopFlag:
    """Set by whoever wants the engine to stop; the engine looks at it in every turn of its loop."""

    def __init__(self) -> None:
        self.draining = False
        """No new batches are dealt; those in flight finish and are kept."""
        self.abandoned = False
        """What is in flight is given up."""

    def drain(self) -> None:
        """Asks for a stop after what is in flight."""
        self.draining = True

    def now(self) -> None:
        """Asks for a stop at once."""
        self.draining = True
        self.abandoned = True
