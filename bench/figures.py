"""One measured figure, its goal, and how it is printed.

Invariant: a figure says itself whether it reaches its goal; nothing is rounded before it is compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number that the farm is held to."""

    name: str
    """With its unit: `plan_1800k_trials_s`."""
    value: float
    goal: float
    better: Literal["higher", "lower"]

    @property
    def reached(self) -> bool:
        """Whether the goal is met."""
        return self.value >= self.goal if self.better == "higher" else self.value <= self.goal

    def __str__(self) -> str:
        sign = ">=" if self.better == "higher" else "<="
        return f"{self.name} {self.value:.4g} {sign}{self.goal:g} {'ok' if self.reached else 'short'}"


def memory_mb(field: Literal["VmRSS", "VmHWM"]) -> float:
    """This process's resident memory in megabytes: now (VmRSS) or at its highest (VmHWM).

    Not `ru_maxrss`: a child inherits that of its parent.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
    return kilobytes * 1024 / 1e6
