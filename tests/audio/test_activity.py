"""Active speech level: pauses, scale and clicks do not move it; silence has none."""

import numpy as np
import pytest

import audio
from tests.audio.signals import level_db, tone, vowels


def active_db(samples: np.ndarray, sample_rate_hz: int = 16_000) -> float:
    return float(20 * np.log10(audio.active_rms(samples, sample_rate_hz)))


@pytest.mark.parametrize("pause_s", [0.5, 5.0, 60.0])
def test_silence_around_speech_does_not_change_its_level(pause_s: float) -> None:
    speech = tone(300, 1.0).samples
    pause = np.zeros(round(pause_s * 16_000), np.float32)
    assert active_db(np.concatenate([pause, speech, pause])) == pytest.approx(level_db(speech), abs=0.1)


def test_room_tone_between_words_is_no_speech() -> None:
    speech = vowels()
    hiss = np.random.default_rng(0).normal(0, 3e-4, len(speech.samples)).astype(np.float32)
    clean = active_db(speech.samples, 24_000)
    assert active_db(speech.samples + hiss, 24_000) == pytest.approx(clean, abs=0.1)
    assert clean > level_db(speech.samples) + 3  # half of it is pauses


def test_level_follows_gain() -> None:
    speech = vowels().samples
    assert active_db(speech * np.float32(0.1), 24_000) == pytest.approx(
        active_db(speech, 24_000) - 20, abs=1e-3
    )


def test_a_click_and_an_offset_do_not_hide_speech() -> None:
    speech = vowels().samples
    clicked = speech + np.float32(0.05)
    clicked[100] = 1.0
    assert active_db(clicked, 24_000) == pytest.approx(active_db(speech, 24_000), abs=1.0)


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(16_000),
        np.zeros(0),
        np.full(16_000, 0.3),
        np.random.default_rng(0).choice([-1, 0, 1], 16_000) / 32_768,
    ],
    ids=["zeros", "nothing", "offset", "dither"],
)
def test_silence_has_no_active_speech(samples: np.ndarray) -> None:
    with pytest.raises(ValueError, match="no active speech"):
        audio.active_rms(samples.astype(np.float32), 16_000)


def test_the_shortest_sounds_have_a_level() -> None:
    assert audio.active_rms(np.array([0.5, -0.5], np.float32), 16_000) == pytest.approx(0.5)
