"""Conditions that add sound: coloured noise, noise of an amplitude, sounds of a folder behind the speech or in bursts.

Invariant: a ratio is between active speech (`audio.active_rms`) and the RMS of what is added where it is added; made
noise is band-limited to 8 kHz, as `WhiteNoise` is, so that models of 16 kHz hear the ratio whatever the file's rate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from audio.activity import active_rms
from audio.conditions.draw import Span, check_span, draw, said
from audio.conditions.level import NOISE_RATE_HZ
from audio.files import load, resample
from farm.types import Waveform

Samples = npt.NDArray[np.float32]
LOWEST_HZ = 50.0
"""Below it coloured noise is flat: no speech, and a steep slope would put all its power there."""
SHORT_S = (0.2, 1.0)
"""Length of a burst."""
FADE_S = 0.02


@dataclass(frozen=True, slots=True)
class AmplitudeNoise:
    """Gaussian noise of a standard deviation, whatever the speech's level: a microphone's own noise."""

    version: ClassVar[str] = "1"
    amplitude: Span
    """Of full scale, 0 to 1."""

    def __post_init__(self) -> None:
        check_span("amplitude", self.amplitude, 0, 1)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Adds the noise."""
        amplitude = draw(self.amplitude, rng)
        noise = _flat(len(waveform.samples), waveform.sample_rate_hz, rng)
        samples = waveform.samples + noise / rms(noise) * np.float32(amplitude)
        return replace(waveform, samples=samples.astype(np.float32)), {"amplitude": said(amplitude)}


@dataclass(frozen=True, slots=True)
class ColorNoise:
    """Noise whose power falls or rises with frequency: -3 dB an octave is pink, -6 brown, 0 white."""

    version: ClassVar[str] = "1"
    snr_db: Span
    """dB, -40 to 80."""
    slope_db_per_octave: Span
    """-12 to 12."""

    def __post_init__(self) -> None:
        check_span("snr_db", self.snr_db, -40, 80)
        check_span("slope_db_per_octave", self.slope_db_per_octave, -12, 12)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Adds the noise; raises ValueError "no active speech"."""
        snr_db, slope = draw(self.snr_db, rng), draw(self.slope_db_per_octave, rng)
        noise = _coloured(len(waveform.samples), waveform.sample_rate_hz, slope, rng)
        drawn = {"snr_db": said(snr_db), "slope_db_per_octave": said(slope)}
        return mixed(waveform, noise, snr_db), drawn


@dataclass(frozen=True, slots=True)
class BackgroundSound:
    """A sound of a folder behind all of the speech, from a drawn place in it, repeated where it is too short."""

    version: ClassVar[str] = "1"
    sounds: str
    """A folder of audio files; its content, not its path, is part of a trial's identity."""
    snr_db: Span
    """dB, -40 to 80."""

    def __post_init__(self) -> None:
        check_span("snr_db", self.snr_db, -40, 80)
        _files(self.sounds)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Adds the sound; raises ValueError "no active speech", or for a file that cannot be decoded."""
        snr_db = draw(self.snr_db, rng)
        name, sound = _sound(self.sounds, waveform.sample_rate_hz, rng)
        start = int(rng.integers(len(sound)))
        behind = np.resize(np.roll(sound, -start), len(waveform.samples))
        return mixed(waveform, behind, snr_db), {"snr_db": said(snr_db), "sound": name}


@dataclass(frozen=True, slots=True)
class ShortSounds:
    """Bursts of sounds of a folder, 0.2 to 1 s long, with gaps between them; each at a ratio of its own."""

    version: ClassVar[str] = "1"
    sounds: str
    """A folder of audio files, as of `BackgroundSound`."""
    snr_db: Span
    """dB, -40 to 80; drawn for each burst."""
    gap_s: Span
    """Seconds from one burst's end to the next one's beginning, 0.1 to 60; the first comes within one gap."""

    def __post_init__(self) -> None:
        check_span("snr_db", self.snr_db, -40, 80)
        check_span("gap_s", self.gap_s, 0.1, 60)
        _files(self.sounds)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Adds the bursts; raises ValueError "no active speech", or for a file that cannot be decoded."""
        rate, speech = waveform.sample_rate_hz, active_rms(waveform.samples, waveform.sample_rate_hz)
        samples, bursts = waveform.samples.copy(), list[str]()
        at = round(rng.uniform(0, min(draw(self.gap_s, rng), waveform.seconds)) * rate)
        while at < len(samples):
            name, sound = _sound(self.sounds, rate, rng)
            snr_db = draw(self.snr_db, rng)
            length = min(round(rng.uniform(*SHORT_S) * rate), len(samples) - at)
            start = int(rng.integers(len(sound)))
            burst = _faded(np.resize(np.roll(sound, -start), length), rate)
            samples[at : at + length] += burst * _gain(speech, burst, snr_db)
            bursts.append(f"{said(at / rate)} s {name} {said(snr_db)} dB")
            at += length + round(draw(self.gap_s, rng) * rate)
        return replace(waveform, samples=samples), {"bursts": "; ".join(bursts)}


def mixed(waveform: Waveform, sound: Samples, snr_db: float) -> Waveform:
    """The waveform with a sound of its length at a ratio to its active speech."""
    speech = active_rms(waveform.samples, waveform.sample_rate_hz)
    samples = waveform.samples + sound * _gain(speech, sound, snr_db)
    return replace(waveform, samples=samples.astype(np.float32))


def rms(samples: Samples) -> float:
    """Above 0, silence too."""
    return max(float(np.sqrt(np.mean(samples**2, dtype=np.float64))), 1e-9)


def _gain(speech_rms: float, sound: Samples, snr_db: float) -> np.float32:
    return np.float32(speech_rms * 10 ** (-snr_db / 20) / rms(sound))


def _faded(sound: Samples, rate: int) -> Samples:
    ramp = np.minimum(1.0, np.arange(len(sound), dtype=np.float32) / (FADE_S * rate))
    return np.asarray(sound * ramp * ramp[::-1], np.float32)


def _flat(frames: int, sample_rate_hz: int, rng: np.random.Generator) -> Samples:
    drawn = rng.standard_normal(-(-frames * NOISE_RATE_HZ // sample_rate_hz) + 1, dtype=np.float32)
    return resample(Waveform(samples=drawn, sample_rate_hz=NOISE_RATE_HZ), sample_rate_hz).samples[:frames]


def _coloured(frames: int, sample_rate_hz: int, slope: float, rng: np.random.Generator) -> Samples:
    drawn = rng.standard_normal(-(-frames * NOISE_RATE_HZ // sample_rate_hz) + 1)
    frequency = np.maximum(np.fft.rfftfreq(len(drawn), 1 / NOISE_RATE_HZ), LOWEST_HZ)
    spectrum = np.fft.rfft(drawn) * (frequency / 1_000) ** (slope / (20 * np.log10(2)))
    shaped = np.asarray(np.fft.irfft(spectrum, len(drawn)), np.float32)
    return resample(Waveform(samples=shaped, sample_rate_hz=NOISE_RATE_HZ), sample_rate_hz).samples[:frames]


# --- sounds of a folder -------------------------------------------------------------------------------------------


def _sound(folder: str, sample_rate_hz: int, rng: np.random.Generator) -> tuple[str, Samples]:
    files = _files(folder)
    file = files[int(rng.integers(len(files)))]
    return file.name, _decoded(file, sample_rate_hz)


@lru_cache(maxsize=64)
def _files(folder: str) -> tuple[Path, ...]:
    """The folder's files, sorted by name, so that a draw is the same on every machine."""
    found = tuple(sorted(p for p in Path(folder).glob("*") if p.suffix in (".wav", ".flac", ".mp3", ".ogg")))
    if not found:
        raise ValueError(f"sounds={folder}: no .wav, .flac, .mp3 or .ogg in this folder")
    return found


@lru_cache(maxsize=64)
def _decoded(file: Path, sample_rate_hz: int) -> Samples:
    samples = resample(load(file), sample_rate_hz).samples
    samples.setflags(write=False)
    return samples
