"""Signals with known properties: tones, bursts that stand for speech, WAV bytes with any header."""

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from farm.types import Condition, Waveform

Samples = npt.NDArray[np.float32]


def tone(
    frequency_hz: float, seconds: float, sample_rate_hz: int = 16_000, amplitude: float = 0.1
) -> Waveform:
    t = np.arange(round(seconds * sample_rate_hz)) / sample_rate_hz
    samples = (amplitude * np.sin(2 * np.pi * frequency_hz * t)).astype(np.float32)
    return Waveform(samples=samples, sample_rate_hz=sample_rate_hz)


def vowels(sample_rate_hz: int = 24_000, pitch_hz: float = 140.0) -> Waveform:
    """Three voiced syllables of 0.4 s with pauses of 0.4 s: harmonics of one pitch up to 4 kHz."""
    t = np.arange(round(0.4 * sample_rate_hz)) / sample_rate_hz
    harmonics = range(1, int(min(4_000, sample_rate_hz / 2.1) / pitch_hz))
    syllable = (
        sum(np.sin(2 * np.pi * k * pitch_hz * t + k * k) / k for k in harmonics) * np.hanning(len(t)) * 0.1
    )
    pause = np.zeros_like(t)
    samples = np.concatenate([pause, *[syllable, pause] * 3]).astype(np.float32)
    return Waveform(samples=samples, sample_rate_hz=sample_rate_hz)


def condition(*steps: dict[str, object], name: str = "made") -> Condition:
    chain = tuple({**step, "_target_": f"audio.conditions.{step['_target_']}"} for step in steps)
    return Condition(name=name, chain=chain)


def frequency_hz(waveform: Waveform) -> float:
    """Of the strongest partial in the middle half."""
    n = len(waveform.samples)
    middle = waveform.samples[n // 4 : 3 * n // 4]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle)), 1 << 20))
    return float(np.argmax(spectrum) * waveform.sample_rate_hz / (1 << 20))


def level_db(samples: Samples) -> float:
    return float(10 * np.log10(np.mean(samples.astype(np.float64) ** 2) + 1e-20))


def wav_bytes(
    samples: Samples, riff: int | None = None, size: int | None = None, before: bytes = b""
) -> bytes:
    """A 24 kHz mono 16 bit WAV whose header says what the test wants."""
    pcm = np.round(samples * 32_767).astype("<i2").tobytes()
    riff = 36 + len(before) + len(pcm) if riff is None else riff
    size = len(pcm) if size is None else size
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 24_000, 48_000, 2, 16)
    return (
        struct.pack("<4sI4s", b"RIFF", riff, b"WAVE")
        + form
        + before
        + struct.pack("<4sI", b"data", size)
        + pcm
    )


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
