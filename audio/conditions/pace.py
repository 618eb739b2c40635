"""Conditions of the voice: tempo and pitch, each without the other (audiomentations, Signalsmith Stretch)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from audio.conditions.draw import Span, check_span, draw, said, transformed
from farm.types import Waveform


@dataclass(frozen=True, slots=True)
class Speed:
    """Tempo times `factor`, pitch kept: 1.5 takes two thirds of the time, 0.75 four thirds.

    Slower than half speed is refused: Signalsmith Stretch then draws phases from the system's entropy, so that the
    same seed would no longer give the same samples.
    """

    version: ClassVar[str] = "1"
    factor: Span
    """0.5 to 2."""

    def __post_init__(self) -> None:
        check_span("factor", self.factor, 0.5, 2)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Stretches or squeezes time."""
        from audiomentations import TimeStretch

        factor = draw(self.factor, rng)
        stretch = TimeStretch(min_rate=factor, max_rate=factor, leave_length_unchanged=False, p=1.0)
        samples = transformed(stretch, waveform, rate=factor)
        return replace(waveform, samples=samples), {"factor": said(factor)}


@dataclass(frozen=True, slots=True)
class PitchShift:
    """Pitch up or down by `semitones`, tempo kept; the formants move with it."""

    version: ClassVar[str] = "1"
    semitones: Span
    """-24 to 24."""

    def __post_init__(self) -> None:
        check_span("semitones", self.semitones, -24, 24)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Shifts the pitch."""
        from audiomentations import PitchShift as Shift

        semitones = draw(self.semitones, rng)
        shift = Shift(min_semitones=semitones, max_semitones=semitones, p=1.0)
        samples = transformed(shift, waveform, num_semitones=semitones)
        return replace(waveform, samples=samples), {"semitones": said(semitones)}
