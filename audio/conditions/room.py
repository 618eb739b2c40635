"""Conditions of the room: reverberation, and the treble that air takes away.

Invariant: active speech keeps its level; reverberation lengthens the audio by its tail, which the chain records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from audio.activity import active_rms
from audio.conditions.draw import Span, check_span, draw, said, transformed
from farm.types import Waveform

FIRST_REFLECTION_S = 0.003
"""A wall half a metre away."""


@dataclass(frozen=True, slots=True)
class Reverberation:
    """A room as exponentially decaying noise after the direct sound (Polack 1988), drawn anew each time.

    Far from the talker the direct sound is weaker than the room: `direct_db` below 0.
    """

    version: ClassVar[str] = "1"
    rt60_s: Span
    """Time in which the room's sound falls by 60 dB, 0.05 to 5."""
    direct_db: Span
    """Energy of the direct sound over that of the room, -20 to 30."""

    def __post_init__(self) -> None:
        check_span("rt60_s", self.rt60_s, 0.05, 5)
        check_span("direct_db", self.direct_db, -20, 30)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Convolves with the room; raises ValueError "no active speech"."""
        from scipy.signal import fftconvolve

        rt60_s, direct_db = draw(self.rt60_s, rng), draw(self.direct_db, rng)
        response = _response(rt60_s, direct_db, waveform.sample_rate_hz, rng)
        wet = fftconvolve(waveform.samples, response).astype(np.float32)
        before = active_rms(waveform.samples, waveform.sample_rate_hz)
        wet *= np.float32(before / active_rms(wet, waveform.sample_rate_hz))
        return replace(waveform, samples=wet), {"rt60_s": said(rt60_s), "direct_db": said(direct_db)}


@dataclass(frozen=True, slots=True)
class AirAbsorption:
    """What `distance_m` of air at 20 degrees and 50 % humidity takes away, most of it treble (audiomentations)."""

    version: ClassVar[str] = "1"
    distance_m: Span
    """1 to 200."""

    def __post_init__(self) -> None:
        check_span("distance_m", self.distance_m, 1, 200)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Filters."""
        from audiomentations import AirAbsorption as Air

        distance = draw(self.distance_m, rng)
        made = Air(min_distance=distance, max_distance=distance, p=1.0)
        samples = transformed(made, waveform, temperature=20, humidity=50, distance=distance)
        return replace(waveform, samples=samples), {"distance_m": said(distance)}


def _response(
    rt60_s: float, direct_db: float, sample_rate_hz: int, rng: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    time_s = np.arange(round(rt60_s * sample_rate_hz)) / sample_rate_hz
    # 60 dB is a factor of 1000 in amplitude: e^(-6.91).
    room = rng.standard_normal(len(time_s)) * np.exp(-np.log(1000) * time_s / rt60_s)
    room[: round(FIRST_REFLECTION_S * sample_rate_hz)] = 0
    room *= 10 ** (-direct_db / 20) / np.sqrt(np.sum(room**2))
    room[0] = 1
    return np.asarray(room, np.float32)
