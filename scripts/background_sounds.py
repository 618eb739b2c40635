"""Background sounds made by arithmetic alone: weather, the sea, beeps, a ringtone, a crowd out of single voices.

Invariant: a sound depends on its length and its random generator, has the rate RATE_HZ and no level of its own: whoever
mixes it scales it. No recording is in here, so that what is mixed with it carries nobody's licence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy import signal

RATE_HZ = 24_000

Samples = npt.NDArray[np.float64]
"""Shape (frames,) at RATE_HZ."""


def rain(seconds: float, rng: np.random.Generator) -> Samples:
    """A steady hiss and some 80 drops a second that are heard one by one."""
    hiss = _band(_noise(seconds, rng), 1_000, 9_000)
    clicks = np.zeros(len(hiss))
    at = rng.integers(0, len(hiss), round(80 * seconds))
    clicks[at] = rng.exponential(1.0, len(at))
    drop = _decay(0.012, 0.003) * _noise(0.012, rng)
    drops = _band(signal.fftconvolve(clicks, drop)[: len(hiss)], 1_500, 7_000)
    return _unit(hiss) + 1.2 * _unit(drops)


def wind(seconds: float, rng: np.random.Generator) -> Samples:
    """Low noise that swells in gusts, and a faint whistle with it."""
    gusts = 0.25 + _slow(seconds, rng, period_s=0.9)
    roar = _band(_noise(seconds, rng), 80, 500)
    whistle = _band(_noise(seconds, rng), 550, 700)
    return _unit(roar) * gusts + 0.35 * _unit(whistle) * gusts**2


def thunderstorm(seconds: float, rng: np.random.Generator) -> Samples:
    """Rain, and a crack with a long rumble at the beginning and near the end."""
    storm = 0.4 * _unit(rain(seconds, rng))
    for start_s in (0.0, max(0.5, seconds - 1.6)):
        start = round(start_s * RATE_HZ)
        clap = _thunder(rng)[: len(storm) - start]
        storm[start : start + len(clap)] += clap
    return storm


def waves(seconds: float, rng: np.random.Generator) -> Samples:
    """Breakers every 2.4 s: a dull rise, then bright foam that runs out."""
    phase = (np.arange(round(seconds * RATE_HZ)) / RATE_HZ / 2.4) % 1.0
    rise, foam = np.exp(-(((phase - 0.35) / 0.16) ** 2)), np.exp(-(((phase - 0.55) / 0.22) ** 2))
    dull = _unit(_band(_noise(seconds, rng), 60, 700))
    bright = _unit(_band(_noise(seconds, rng), 900, 6_000))
    return dull * (0.15 + rise) + 0.6 * bright * (0.1 + foam)


def alarm(seconds: float, rng: np.random.Generator) -> Samples:
    """A digital alarm clock: four short beeps of 2 kHz, a pause, again."""
    time_s = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    tone = np.sin(2 * np.pi * 2_048 * time_s) + 0.3 * np.sin(2 * np.pi * 6_144 * time_s)
    in_group = time_s % 1.0
    on = (in_group < 0.5) & (in_group % 0.125 < 0.07)
    envelope = signal.lfilter([0.02], [1, -0.98], on.astype(np.float64))
    return np.asarray(tone * envelope, dtype=np.float64)


def ringtone(seconds: float, rng: np.random.Generator) -> Samples:
    """A mobile phone: our own eight notes on a marimba, over and over."""
    notes_hz = (659.3, 784.0, 987.8, 784.0, 880.0, 1_046.5, 1_318.5, 1_046.5)
    step = round(0.15 * RATE_HZ)
    melody = np.zeros(round(seconds * RATE_HZ) + RATE_HZ)
    for number, start in enumerate(range(0, len(melody) - RATE_HZ, step)):
        note = _note(notes_hz[number % len(notes_hz)])
        melody[start : start + len(note)] += note
    return melody[: round(seconds * RATE_HZ)]


def chatter(seconds: float, rng: np.random.Generator, voices: Sequence[Samples]) -> Samples:
    """A crowd in a room: each voice from a place of its own in its sentence, low-passed, with an echoing wall."""
    frames = round(seconds * RATE_HZ)
    crowd = np.zeros(frames)
    for voice in voices:
        looped = np.tile(_unit(voice), -(-frames // len(voice)) + 1)
        start = int(rng.integers(0, len(voice)))
        crowd += rng.uniform(0.5, 1.0) * looped[start : start + frames]
    room = _decay(0.4, 0.1) * _noise(0.4, rng)
    room[0] = 8.0
    return _band(signal.fftconvolve(crowd, room)[:frames], 150, 3_500)


SOUNDS: Mapping[str, Callable[[float, np.random.Generator], Samples]] = {
    "rain": rain,
    "wind": wind,
    "thunderstorm": thunderstorm,
    "waves": waves,
    "alarm": alarm,
    "ringtone": ringtone,
}
"""Those that need no voices."""


def _noise(seconds: float, rng: np.random.Generator) -> Samples:
    return rng.standard_normal(round(seconds * RATE_HZ))


def _band(samples: Samples, low_hz: float, high_hz: float) -> Samples:
    sections = signal.butter(2, (low_hz, high_hz), "bandpass", fs=RATE_HZ, output="sos")
    return np.asarray(signal.sosfilt(sections, samples), dtype=np.float64)


def _unit(samples: Samples) -> Samples:
    return np.asarray(samples / np.sqrt(np.mean(samples**2)), dtype=np.float64)


def _decay(seconds: float, constant_s: float) -> Samples:
    return np.exp(-np.arange(round(seconds * RATE_HZ)) / (constant_s * RATE_HZ))


def _slow(seconds: float, rng: np.random.Generator, period_s: float) -> Samples:
    """A smooth random course between 0 and 1, with about one turn a period."""
    points = rng.uniform(0, 1, int(seconds / period_s) + 3)
    position = np.arange(round(seconds * RATE_HZ)) / RATE_HZ / period_s
    left = position.astype(np.int64)
    blend = (1 - np.cos(np.pi * (position - left))) / 2
    return np.asarray(points[left] * (1 - blend) + points[left + 1] * blend, dtype=np.float64)


def _thunder(rng: np.random.Generator) -> Samples:
    crack = 2.5 * _unit(_band(_noise(2.5, rng), 300, 3_000)) * _decay(2.5, 0.05)
    rumble = _unit(_band(_noise(2.5, rng), 40, 250)) * _decay(2.5, 0.6)
    return crack + 2.0 * rumble


def _note(pitch_hz: float) -> Samples:
    time_s = np.arange(round(0.5 * RATE_HZ)) / RATE_HZ
    overtone = 0.3 * np.sin(2 * np.pi * 4 * pitch_hz * time_s) * _decay(0.5, 0.03)
    return (np.sin(2 * np.pi * pitch_hz * time_s) + overtone) * _decay(0.5, 0.14)
