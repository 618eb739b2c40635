"""Every condition does what its name says, measured on the samples; chains record what they drew and did."""

import hashlib
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import audio
from audio.conditions import apply, build
from farm.types import Waveform
from tests.audio.signals import condition, frequency_hz, level_db, tone, vowels

ROOT = Path(__file__).parents[2]
SPEECH = ROOT / "data/echomind_mini/data_synthesis/audio/male"
NOISY = condition({"_target_": "WhiteNoise", "snr_db": 10})
EVERY = [
    {"_target_": "WhiteNoise", "snr_db": [0, 20]},
    {"_target_": "Gain", "gain_db": [-12, 6]},
    {"_target_": "Speed", "factor": [0.5, 2]},
    {"_target_": "PitchShift", "semitones": [-5, 5]},
    {"_target_": "TelephoneBand"},
]


def spoken() -> Waveform:
    return audio.load(sorted(SPEECH.glob("*.wav"))[0])


def snr_db(clean: Waveform, noisy: Waveform) -> float:
    """Over active speech, from the samples alone."""
    noise = noisy.samples.astype(np.float64) - clean.samples
    return float(20 * np.log10(audio.active_rms(clean.samples, clean.sample_rate_hz)) - level_db(noise))


@settings(max_examples=25, deadline=None)
@given(
    wanted_db=st.floats(-10, 40),
    sample_rate_hz=st.sampled_from([8_000, 16_000, 24_000, 44_100, 48_000]),
    seed=st.integers(0, 2**31 - 1),
)
def test_noise_has_its_ratio_to_active_speech(wanted_db: float, sample_rate_hz: int, seed: int) -> None:
    clean = vowels(sample_rate_hz)
    made = condition({"_target_": "WhiteNoise", "snr_db": wanted_db})
    noisy, drawn = apply(made, clean, seed)
    assert len(noisy.samples) == len(clean.samples)
    assert drawn["clipped_share"] == "0"
    assert snr_db(clean, noisy) == pytest.approx(wanted_db, abs=0.1)


@pytest.mark.parametrize("sample_rate_hz", [16_000, 24_000, 44_100, 48_000])
def test_a_model_at_16_khz_hears_the_ratio_whatever_the_files_rate(sample_rate_hz: int) -> None:
    clean = vowels(sample_rate_hz)
    noisy, _ = apply(NOISY, clean, 1)
    heard = audio.resample(noisy, 16_000)
    assert snr_db(audio.resample(clean, 16_000), heard) == pytest.approx(10, abs=0.5)


def test_noise_over_real_speech_has_its_ratio_although_the_speech_pauses() -> None:
    speech = spoken()
    pause = np.zeros(3 * speech.sample_rate_hz, np.float32)
    padded = replace(speech, samples=np.concatenate([pause, speech.samples, pause]))
    for clean in (speech, padded):
        noisy, _ = apply(NOISY, clean, 3)
        noise = noisy.samples - clean.samples
        assert audio.active_rms(speech.samples, speech.sample_rate_hz) / noise.std() == pytest.approx(
            10 ** (10 / 20), rel=0.02
        )


def test_noise_is_white_up_to_8_khz() -> None:
    clean = vowels(16_000)
    noise = apply(NOISY, clean, 5)[0].samples - clean.samples
    power = np.abs(np.fft.rfft(noise)) ** 2
    bands = [10 * np.log10(band.mean()) for band in np.array_split(power, 8)]
    assert max(bands) - min(bands) < 1.0


def test_noise_needs_speech() -> None:
    silent = Waveform(samples=np.zeros(16_000, np.float32), sample_rate_hz=16_000)
    with pytest.raises(ValueError, match="no active speech"):
        apply(NOISY, silent, 1)


@settings(max_examples=20, deadline=None)
@given(gain_db=st.floats(-40, 13))
def test_gain_is_exact(gain_db: float) -> None:
    clean = vowels()
    heard, drawn = apply(condition({"_target_": "Gain", "gain_db": gain_db}), clean, 0)
    np.testing.assert_allclose(heard.samples, clean.samples * 10 ** (gain_db / 20), rtol=1e-5)
    assert float(drawn["gain_db"]) == pytest.approx(gain_db, abs=1e-4)


@pytest.mark.parametrize("factor", [0.5, 0.75, 1.25, 1.5, 2.0])
@pytest.mark.parametrize("sample_rate_hz", [16_000, 24_000])
def test_speed_changes_tempo_within_1_percent_and_keeps_pitch(factor: float, sample_rate_hz: int) -> None:
    clean = tone(440, 3, sample_rate_hz)
    heard, drawn = apply(condition({"_target_": "Speed", "factor": factor}), clean, 0)
    assert heard.seconds == pytest.approx(3 / factor, rel=0.01)
    assert float(drawn["seconds"]) == pytest.approx(heard.seconds, rel=1e-5)
    assert 1_200 * np.log2(frequency_hz(heard) / 440) == pytest.approx(0, abs=20)


@pytest.mark.parametrize("factor", [0.75, 1.5])
def test_speed_moves_every_syllable_not_only_the_end(factor: float) -> None:
    clean = vowels()
    heard, _ = apply(condition({"_target_": "Speed", "factor": factor}), clean, 0)
    for start_s in (0.4, 1.2, 2.0):  # where vowels() puts its syllables, each 0.4 s long
        middle = round((start_s + 0.2) / factor * 24_000)
        pause = round((start_s + 0.6) / factor * 24_000)
        assert level_db(heard.samples[middle - 500 : middle + 500]) > -35
        assert level_db(heard.samples[pause - 500 : pause + 500]) < -60


@pytest.mark.parametrize("semitones", [-5, -2.5, 1, 5, 12])
@pytest.mark.parametrize("pitch_hz", [120, 440])
def test_pitch_moves_by_its_semitones_within_20_cents_and_tempo_stays(
    semitones: float, pitch_hz: float
) -> None:
    clean = tone(pitch_hz, 3, 24_000)
    heard, drawn = apply(condition({"_target_": "PitchShift", "semitones": semitones}), clean, 0)
    assert len(heard.samples) == len(clean.samples)
    assert "seconds" not in drawn
    assert 1_200 * np.log2(frequency_hz(heard) / pitch_hz) == pytest.approx(100 * semitones, abs=20)


@pytest.mark.parametrize("sample_rate_hz", [8_000, 16_000, 24_000, 44_100])
def test_the_telephone_passes_its_band_and_nothing_else(sample_rate_hz: int) -> None:
    def through(frequency: float) -> float:
        clean = tone(frequency, 1, sample_rate_hz)
        heard, drawn = apply(condition({"_target_": "TelephoneBand"}), clean, 0)
        assert (len(heard.samples), heard.sample_rate_hz) == (sample_rate_hz, sample_rate_hz)
        assert "sample_rate_hz" not in drawn
        inside = slice(sample_rate_hz // 10, -sample_rate_hz // 10)
        return level_db(heard.samples[inside]) - level_db(clean.samples[inside])

    assert [through(f) for f in (360, 1_000, 3_200)] == pytest.approx([0, 0, 0], abs=1)
    assert [through(f) for f in (300, 3_400)] == pytest.approx([-6, -6], abs=1)
    assert max(through(f) for f in (50, 200, 3_800)) < -30


def test_the_telephone_has_no_more_than_8_bits() -> None:
    heard, _ = apply(condition({"_target_": "TelephoneBand"}), vowels(8_000), 0)
    assert len(np.unique(heard.samples)) <= 256


def test_clean_speech_is_untouched() -> None:
    clean = vowels()
    heard, drawn = apply(condition(), clean, 7)
    assert heard is clean
    assert drawn == {"peak": f"{np.abs(clean.samples).max():.6g}", "clipped_share": "0"}


def test_clipping_is_what_16_bit_would_do_and_on_the_record() -> None:
    loud = tone(1_000, 1, amplitude=0.5)
    heard, drawn = apply(condition({"_target_": "Gain", "gain_db": 12}), loud, 0)
    assert np.abs(heard.samples).max() == 1
    assert float(drawn["peak"]) == pytest.approx(0.5 * 10 ** (12 / 20), rel=1e-3)
    assert float(drawn["clipped_share"]) == pytest.approx(1 - 2 / np.pi * np.arcsin(1 / 1.99), abs=0.05)


def test_nothing_is_clipped_between_steps() -> None:
    clean = vowels()
    steps = [{"_target_": "Gain", "gain_db": g} for g in (40, -40)]
    heard, drawn = apply(condition(*steps), clean, 0)
    np.testing.assert_allclose(heard.samples, clean.samples, rtol=1e-5)
    assert drawn["clipped_share"] == "0"


def test_a_chain_records_each_steps_draws_under_its_place_and_name() -> None:
    _, drawn = apply(condition(*EVERY), vowels(), 11)
    assert set(drawn) == {
        "0.WhiteNoise.snr_db",
        "1.Gain.gain_db",
        "2.Speed.factor",
        "3.PitchShift.semitones",
        "seconds",
        "peak",
        "clipped_share",
    }


def test_a_range_is_drawn_from_and_what_is_recorded_was_applied() -> None:
    clean = vowels()
    made = condition({"_target_": "Gain", "gain_db": [-12, -6]})
    drawn = [float(apply(made, clean, seed)[1]["gain_db"]) for seed in range(200)]
    assert -12 <= min(drawn) < -11.5
    assert -6.5 < max(drawn) <= -6
    exact = condition({"_target_": "Gain", "gain_db": drawn[3]})
    np.testing.assert_array_equal(apply(exact, clean, 99)[0].samples, apply(made, clean, 3)[0].samples)


def test_a_steps_draws_do_not_depend_on_the_steps_before_it() -> None:
    clean, noise = vowels(), {"_target_": "WhiteNoise", "snr_db": [0, 20]}
    drawn = [
        apply(condition({"_target_": "Gain", "gain_db": gain}, noise), clean, 4)[1]["1.WhiteNoise.snr_db"]
        for gain in (-3, [-3, 3])
    ]
    assert drawn[0] == drawn[1]


def test_the_input_is_never_written_to() -> None:
    clean = vowels()
    clean.samples.setflags(write=False)
    apply(condition(*EVERY), clean, 1)


@pytest.mark.parametrize("frames", [1, 2, 7, 160])
@pytest.mark.parametrize("step", EVERY, ids=lambda step: step["_target_"])
def test_the_shortest_audio_is_heard_or_refused_with_the_reason(step: dict[str, object], frames: int) -> None:
    samples = np.resize(np.array([0.1, -0.1], np.float32), frames)
    try:
        heard, _ = apply(condition(step), Waveform(samples=samples, sample_rate_hz=24_000), 1)
    except ValueError as error:
        assert str(error) in ("no active speech", "too short for this condition")
    else:
        assert len(heard.samples)
        assert np.isfinite(heard.samples).all()


def digest(seed: int) -> str:
    heard, drawn = apply(condition(*EVERY), vowels(), seed)
    return hashlib.sha256(heard.samples.tobytes() + repr(sorted(drawn.items())).encode()).hexdigest()


def test_one_seed_gives_one_sample_in_threads_and_in_another_process() -> None:
    seeds = [1, 2, 3, 4]
    alone = [digest(seed) for seed in seeds]
    assert len(set(alone)) == len(seeds)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(digest, seeds * 4)) == alone * 4
    code = "from tests.audio.test_conditions import digest; print(*[digest(s) for s in [1, 2, 3, 4]])"
    env = {**os.environ, "PYTHONHASHSEED": "77"}
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == alone


def test_global_random_numbers_are_neither_used_nor_moved() -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index, union-attr, call-overload]
    first = digest(5)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # type: ignore[index, union-attr, call-overload]
    random.seed(1)
    np.random.seed(1)
    assert digest(5) == first


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"_target_": "WhiteNose", "snr_db": 3}, r"audio\.conditions\.Gain, .*audio\.conditions\.WhiteNoise"),
        (
            {"_target_": "WhiteNoise", "snr": 3},
            r"unexpected keyword argument 'snr'|missing .*; it takes snr_db",
        ),
        ({"_target_": "WhiteNoise"}, "it takes snr_db"),
        ({"_target_": "TelephoneBand", "x": 1}, "it takes no parameters"),
        (
            {"_target_": "Speed", "factor": 0.3},
            r"factor must be a number or \[low, high\] between 0\.5 and 2",
        ),
        ({"_target_": "Gain", "gain_db": [3, -3]}, "gain_db must be"),
        ({"_target_": "Gain", "gain_db": [1, 2, 3]}, "gain_db must be"),
        ({"_target_": "Gain", "gain_db": "loud"}, "gain_db must be"),
        ({"_target_": "Gain", "gain_db": None}, "gain_db must be"),
        ({"_target_": "PitchShift", "semitones": True}, "semitones must be"),
    ],
)
def test_a_wrong_step_is_refused_with_the_valid_choices(step: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=f"condition made: .*({says})"):
        build(condition(step))
