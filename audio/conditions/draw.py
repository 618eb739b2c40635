"""Parameters that may be ranges, and audiomentations without its global random numbers: what the conditions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from farm.types import Waveform

Span = float | Sequence[float]
"""A number, or [low, high] to draw from uniformly."""


def check_span(name: str, span: Span, low: float, high: float) -> None:
    """Checks a parameter when a condition is made.

    Raises:
        ValueError: neither a number nor [low, high], or outside low..high.
    """
    ends: list[Any] = list(span) if isinstance(span, list | tuple) else [span]
    numbers = all(isinstance(e, int | float) and not isinstance(e, bool) for e in ends)
    if not numbers or len(ends) not in (1, 2) or not low <= ends[0] <= ends[-1] <= high:
        raise ValueError(f"{name} must be a number or [low, high] between {low:g} and {high:g}, not {span!r}")


def draw(span: Span, rng: np.random.Generator) -> float:
    """The number itself, or a uniform draw, rounded to six digits so that what is recorded is what was applied."""
    if isinstance(span, int | float):
        return float(span)
    return float(said(rng.uniform(span[0], span[-1])))


def said(value: float) -> str:
    """A drawn value as it is recorded."""
    return f"{value:.6g}"


def transformed(transform: Any, waveform: Waveform, **parameters: float) -> npt.NDArray[np.float32]:
    """Runs an audiomentations transform with parameters that we drew.

    Frozen, it never draws for itself: its own draws come from Python's and NumPy's global generators, which other
    threads use too. Only for transforms that draw in `randomize_parameters` and nowhere else (not for its noises).
    """
    transform.parameters = {"should_apply": True, **parameters}
    transform.freeze_parameters()
    return np.asarray(transform(waveform.samples, waveform.sample_rate_hz), np.float32)
