"""Conditions that shape the spectrum: low, high and band pass, band stop, shelves (audiomentations).

Invariant: length and rate stay; the filters of bands run forth and back, so that nothing is delayed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from audio.conditions.draw import Span, check_span, draw, said, transformed
from farm.types import Waveform

ROLLOFF_DB = 24
"""dB an octave beyond an edge."""
SHORTEST = 32
"""Samples; a filter that runs forth and back needs some to begin with."""
HIGHEST_SHARE = 0.98
"""Of the Nyquist frequency: a filter's edge beyond it filters nothing, so it is moved there, and recorded so."""


@dataclass(frozen=True, slots=True)
class LowPass:
    """Keeps what is below `cutoff_hz`."""

    version: ClassVar[str] = "1"
    cutoff_hz: Span
    """100 to 20,000."""

    def __post_init__(self) -> None:
        check_span("cutoff_hz", self.cutoff_hz, 100, 20_000)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Filters."""
        return _one_sided("LowPassFilter", waveform, draw(self.cutoff_hz, rng))


@dataclass(frozen=True, slots=True)
class HighPass:
    """Keeps what is above `cutoff_hz`."""

    version: ClassVar[str] = "1"
    cutoff_hz: Span
    """20 to 10,000."""

    def __post_init__(self) -> None:
        check_span("cutoff_hz", self.cutoff_hz, 20, 10_000)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Filters."""
        return _one_sided("HighPassFilter", waveform, draw(self.cutoff_hz, rng))


@dataclass(frozen=True, slots=True)
class BandPass:
    """Keeps a band around `center_hz`."""

    version: ClassVar[str] = "1"
    center_hz: Span
    """100 to 10,000."""
    width_share: Span
    """The band's width over its center, 0.1 to 1.99."""

    def __post_init__(self) -> None:
        _check_band(self.center_hz, self.width_share)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Filters."""
        return _two_sided("BandPassFilter", waveform, draw(self.center_hz, rng), draw(self.width_share, rng))


@dataclass(frozen=True, slots=True)
class BandStop:
    """Takes a band around `center_hz` away."""

    version: ClassVar[str] = "1"
    center_hz: Span
    """100 to 10,000."""
    width_share: Span
    """The band's width over its center, 0.1 to 1.99."""

    def __post_init__(self) -> None:
        _check_band(self.center_hz, self.width_share)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Filters."""
        return _two_sided("BandStopFilter", waveform, draw(self.center_hz, rng), draw(self.width_share, rng))


@dataclass(frozen=True, slots=True)
class LowShelf:
    """Louder or softer below `center_hz`."""

    version: ClassVar[str] = "1"
    center_hz: Span
    """50 to 4,000."""
    gain_db: Span
    """-24 to 24."""

    def __post_init__(self) -> None:
        check_span("center_hz", self.center_hz, 50, 4_000)
        check_span("gain_db", self.gain_db, -24, 24)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Filters."""
        return _shelf("LowShelfFilter", waveform, draw(self.center_hz, rng), draw(self.gain_db, rng))


@dataclass(frozen=True, slots=True)
class HighShelf:
    """Louder or softer above `center_hz`."""

    version: ClassVar[str] = "1"
    center_hz: Span
    """300 to 7,500."""
    gain_db: Span
    """-24 to 24."""

    def __post_init__(self) -> None:
        check_span("center_hz", self.center_hz, 300, 7_500)
        check_span("gain_db", self.gain_db, -24, 24)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Filters."""
        return _shelf("HighShelfFilter", waveform, draw(self.center_hz, rng), draw(self.gain_db, rng))


def _check_band(center_hz: Span, width_share: Span) -> None:
    check_span("center_hz", center_hz, 100, 10_000)
    check_span("width_share", width_share, 0.1, 1.99)


def _long_enough(waveform: Waveform) -> None:
    if len(waveform.samples) < SHORTEST:
        raise ValueError("too short for this condition")


def _below_nyquist(frequency_hz: float, waveform: Waveform) -> float:
    return float(min(frequency_hz, HIGHEST_SHARE * waveform.sample_rate_hz / 2))


def _one_sided(name: str, waveform: Waveform, cutoff_hz: float) -> tuple[Waveform, dict[str, str]]:
    _long_enough(waveform)
    edge_hz = _below_nyquist(cutoff_hz, waveform)
    made = _made(name, min_cutoff_freq=edge_hz, max_cutoff_freq=edge_hz, **_ROLLOFF)
    samples = transformed(made, waveform, cutoff_freq=edge_hz, rolloff=ROLLOFF_DB)
    return replace(waveform, samples=samples), {"cutoff_hz": said(edge_hz)}


def _two_sided(
    name: str, waveform: Waveform, center_hz: float, width_share: float
) -> tuple[Waveform, dict[str, str]]:
    _long_enough(waveform)
    low_hz = center_hz * (1 - width_share / 2)
    high_hz = _below_nyquist(center_hz * (1 + width_share / 2), waveform)
    if low_hz >= high_hz:
        raise ValueError(f"no band of {said(low_hz)} Hz in audio of {waveform.sample_rate_hz} Hz")
    center, width = (low_hz + high_hz) / 2, high_hz - low_hz
    made = _made(name, min_center_freq=center, max_center_freq=center, **_ROLLOFF)
    samples = transformed(made, waveform, center_freq=center, bandwidth=width, rolloff=ROLLOFF_DB)
    return replace(waveform, samples=samples), {"low_hz": said(low_hz), "high_hz": said(high_hz)}


def _shelf(
    name: str, waveform: Waveform, center_hz: float, gain_db: float
) -> tuple[Waveform, dict[str, str]]:
    center = _below_nyquist(center_hz, waveform)
    made = _made(name, min_center_freq=center, max_center_freq=center)
    samples = transformed(made, waveform, center_freq=center, gain_db=gain_db, q_factor=0.7)
    return replace(waveform, samples=samples), {"center_hz": said(center), "gain_db": said(gain_db)}


_ROLLOFF = {"min_rolloff": ROLLOFF_DB, "max_rolloff": ROLLOFF_DB, "zero_phase": True}


def _made(name: str, **settings: float | bool) -> Any:
    import audiomentations

    return getattr(audiomentations, name)(p=1.0, **settings)
