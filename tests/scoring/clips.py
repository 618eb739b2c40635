"""Speech to score: real speech where it is, and every kind of odd speech made from it or from a voice-like tone."""

import os
from pathlib import Path

import numpy as np
import pytest

from farm.types import Failure, Item, Reply, Score, Stimulus, Waveform

SHARED_AUDIO = "ECHOMIND_SAMPLES"
CLIP = "id_854_sad_school_target.wav"


def reply(samples: np.ndarray, sample_rate_hz: int = 24000) -> tuple[Item, Reply]:
    speech = Waveform(samples=samples.astype(np.float32), sample_rate_hz=sample_rate_hz)
    return item(), Reply(text="hello", speech=speech)


def item() -> Item:
    return Item(key="k", benchmark="b", task="b.t", unit="u", pair_id="p", stimulus=Stimulus(turns=()))


def failed_reply() -> tuple[Item, Reply]:
    return item(), Reply(failure=Failure(kind="worker_crash", message="gone"))


def silent_reply() -> tuple[Item, Reply]:
    return item(), Reply(text="only text")


def voice(seconds: float, sample_rate_hz: int = 24000) -> np.ndarray:
    """A buzzing vowel in syllables: not speech, but as loud, as broad and as uneven."""
    t = np.arange(round(seconds * sample_rate_hz)) / sample_rate_hz
    harmonics = [np.sin(2 * np.pi * 120 * k * t) / k for k in range(1, 25)]
    return 0.2 * np.sum(harmonics, axis=0) * (0.55 + 0.45 * np.sin(2 * np.pi * 4 * t))


def real_speech() -> tuple[np.ndarray, int]:
    """A clip of real speech; skips the test where there is none."""
    import soundfile

    folder = os.environ.get(SHARED_AUDIO)
    if not folder or not (Path(folder) / CLIP).is_file():
        pytest.skip(f"no real speech: {SHARED_AUDIO}=folder with {CLIP}")
    return soundfile.read(Path(folder) / CLIP, dtype="float32")


def with_noise(samples: np.ndarray, snr_db: float) -> np.ndarray:
    noise = np.random.default_rng(0).normal(0, 1, len(samples))
    return samples + noise * np.sqrt(np.mean(samples**2)) * 10 ** (-snr_db / 20)


# 1.2 s: DNSMOS doubles a clip until it fills its window, and 9.6 s is a single window.
ODD = {
    "empty": reply(np.zeros(0)),
    "a single sample": reply(np.ones(1)),
    "0.1 s": reply(voice(0.1)),
    "0.3 s": reply(voice(0.3)),
    "0.3 s at 8 kHz": reply(voice(0.3, 8000), 8000),
    "silent": reply(np.zeros(48000)),
    "nearly silent": reply(voice(1.2) * 1e-5),
    "DC": reply(np.full(48000, 0.5)),
    "clipped": reply(np.clip(voice(1.2) * 100, -1, 1)),
    "beyond full scale": reply(voice(1.2) * 100),
    "an impulse": reply(np.eye(1, 48000, 1000)[0]),
    "mostly silent": reply(np.concatenate([np.zeros(200_000), voice(1)])),
    "NaN": reply(np.where(np.arange(28800) == 7, np.nan, voice(1.2))),
    "inf": reply(np.where(np.arange(28800) == 7, np.inf, voice(1.2))),
    "8 kHz": reply(voice(1.2, 8000), 8000),
    "an odd rate": reply(voice(1.2, 8099), 8099),
    "48 kHz": reply(voice(1.2, 48000), 48000),
    "100 Hz": reply(voice(3, 100), 100),
    "no speech": silent_reply(),
    "a failed reply": failed_reply(),
}
NOT_SCORED = {
    "empty": "not_applicable",
    "a single sample": "not_applicable",
    "0.1 s": "not_applicable",
    "silent": "not_applicable",
    "nearly silent": "not_applicable",
    "DC": "not_applicable",
    "NaN": "failed",
    "inf": "failed",
    "100 Hz": "not_applicable",
    "no speech": "not_applicable",
    "a failed reply": "failed",
}


def check_odd_speech(scores: list[list[Score]], names: tuple[str, ...]) -> None:
    """Every odd reply has a finite value or a reason under each name, and the status that it should have."""
    assert len(scores) == len(ODD)
    for kind, found in zip(ODD, scores, strict=True):
        assert tuple(score.name for score in found) == names
        for score in found:
            assert score.status == NOT_SCORED.get(kind, "ok"), (kind, score)
            assert score.rater and score.rater_kind == "model"
            if score.status == "ok":
                assert score.value is not None and np.isfinite(score.value), (kind, score)
                assert isinstance(score.value, float) and score.reason in ("", score.label)
            else:
                assert score.value is None and score.reason, (kind, score)


def values(scores: list[list[Score]]) -> np.ndarray:
    """Shape (replies, names)."""
    return np.array([[score.value for score in found] for found in scores], dtype=float)
