"""Conditions of level and noise: gain, white noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from audio.activity import active_rms
from audio.conditions.draw import Span, check_span, draw, said
from audio.files import resample
from farm.types import Waveform

NOISE_RATE_HZ = 16_000
"""Noise is white up to half of this, whatever the file's rate."""


@dataclass(frozen=True, slots=True)
class Gain:
    """Louder or softer by `gain_db`; what then exceeds full scale is clipped at the chain's end, and recorded."""

    version: ClassVar[str] = "1"
    gain_db: Span
    """dB, -60 to 60."""

    def __post_init__(self) -> None:
        check_span("gain_db", self.gain_db, -60, 60)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Scales the samples."""
        gain_db = draw(self.gain_db, rng)
        factor = np.float32(10 ** (gain_db / 20))
        return replace(waveform, samples=waveform.samples * factor), {"gain_db": said(gain_db)}


@dataclass(frozen=True, slots=True)
class WhiteNoise:
    """White Gaussian noise at a signal-to-noise ratio over active speech (`audio.active_rms`).

    The noise is white up to 8 kHz, the band of the 16 kHz that speech models hear: noise up to each file's own Nyquist
    frequency would lose 1.8 dB (24 kHz) or 4.8 dB (48 kHz) in the model's resampling, and files of one script differ
    in rate. The drawn noise is scaled to the exact ratio. (audiomentations' AddGaussianSNR measures speech over the
    whole file, pauses too, and draws from NumPy's global generator.)
    """

    version: ClassVar[str] = "1"
    snr_db: Span
    """dB, -40 to 80."""

    def __post_init__(self) -> None:
        check_span("snr_db", self.snr_db, -40, 80)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Adds the noise.

        Raises:
            ValueError: "no active speech".
        """
        snr_db = draw(self.snr_db, rng)
        speech_rms = active_rms(waveform.samples, waveform.sample_rate_hz)
        noise = _white(len(waveform.samples), waveform.sample_rate_hz, rng)
        noise *= speech_rms * 10 ** (-snr_db / 20) / np.sqrt(np.mean(noise**2, dtype=np.float64))
        samples = (waveform.samples + noise).astype(np.float32)
        return replace(waveform, samples=samples), {"snr_db": said(snr_db)}


def _white(
    frames: int, sample_rate_hz: int, rng: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    drawn = rng.standard_normal(-(-frames * NOISE_RATE_HZ // sample_rate_hz) + 1, dtype=np.float32)
    noise = resample(Waveform(samples=drawn, sample_rate_hz=NOISE_RATE_HZ), sample_rate_hz)
    return noise.samples[:frames]
