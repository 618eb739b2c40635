"""The audio-quality family, measured on the samples: ratios, band edges, levels, losses; one seed, one result."""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import audio
from audio.conditions import apply, build
from farm.types import Waveform
from tests.audio.signals import Samples, condition, frequency_hz, level_db, tone, vowels

ROOT = Path(__file__).parents[2]
SOUNDS = str(ROOT / "data/sounds")
EVERY = [
    {"_target_": "AmplitudeNoise", "amplitude": [0.001, 0.015]},
    {"_target_": "ColorNoise", "snr_db": [5, 40], "slope_db_per_octave": [-6, 6]},
    {"_target_": "BackgroundSound", "sounds": SOUNDS, "snr_db": [3, 30]},
    {"_target_": "ShortSounds", "sounds": SOUNDS, "snr_db": [-6, 18], "gap_s": [0.3, 1]},
    {"_target_": "Reverberation", "rt60_s": [0.15, 0.8], "direct_db": [0, 10]},
    {"_target_": "AirAbsorption", "distance_m": [10, 100]},
    {"_target_": "LowPass", "cutoff_hz": [500, 7500]},
    {"_target_": "HighPass", "cutoff_hz": [20, 2400]},
    {"_target_": "BandPass", "center_hz": [200, 4000], "width_share": [0.5, 1.99]},
    {"_target_": "BandStop", "center_hz": [200, 4000], "width_share": [0.5, 1.99]},
    {"_target_": "LowShelf", "center_hz": [50, 4000], "gain_db": [-18, 18]},
    {"_target_": "HighShelf", "center_hz": [300, 7500], "gain_db": [-18, 18]},
    {"_target_": "Aliasing", "rate_hz": [8000, 16000]},
    {"_target_": "BitCrush", "bits": [5, 10]},
    {"_target_": "Clipping", "percent": [0, 40]},
    {"_target_": "GainTransition", "from_db": [-24, 6], "to_db": [-24, 6], "over_s": [0.2, 6]},
    {"_target_": "Mp3", "kbit_per_s": [8, 64]},
    {"_target_": "PacketLoss", "percent": [5, 20]},
]
LENGTHENING = ("Reverberation",)
each = pytest.mark.parametrize("step", EVERY, ids=lambda step: str(step["_target_"]))


def heard(step: dict[str, object], clean: Waveform, seed: int = 1) -> tuple[Waveform, dict[str, str]]:
    return apply(condition(step), clean, seed)


def snr_db(clean: Waveform, noise: Samples) -> float:
    return float(20 * np.log10(audio.active_rms(clean.samples, clean.sample_rate_hz)) - level_db(noise))


@each
def test_length_and_rate_stay_or_are_recorded_and_samples_change(step: dict[str, object]) -> None:
    clean = vowels()
    clean.samples.setflags(write=False)
    made, drawn = heard(step, clean, 3)
    assert made.sample_rate_hz == clean.sample_rate_hz
    assert (
        ("seconds" in drawn) == (len(made.samples) != len(clean.samples)) == (step["_target_"] in LENGTHENING)
    )
    assert len(drawn) > 2
    length = len(clean.samples)
    assert not np.array_equal(made.samples[:length], clean.samples)
    assert np.isfinite(made.samples).all() and made.samples.dtype == np.float32


@each
@pytest.mark.parametrize("frames", [1, 7, 160])
def test_the_shortest_audio_is_heard_or_refused_with_the_reason(step: dict[str, object], frames: int) -> None:
    samples = np.resize(np.array([0.1, -0.1], np.float32), frames)
    try:
        made, _ = heard(step, Waveform(samples=samples, sample_rate_hz=24_000))
    except ValueError as error:
        assert str(error) in ("no active speech", "too short for this condition")
    else:
        assert np.isfinite(made.samples).all()


@settings(max_examples=20, deadline=None)
@given(
    wanted_db=st.floats(-10, 40),
    slope=st.floats(-6, 6),
    sample_rate_hz=st.sampled_from([16_000, 24_000, 44_100]),
    seed=st.integers(0, 2**31 - 1),
)
def test_coloured_noise_has_its_ratio_to_active_speech(
    wanted_db: float, slope: float, sample_rate_hz: int, seed: int
) -> None:
    clean = vowels(sample_rate_hz)
    step = {"_target_": "ColorNoise", "snr_db": wanted_db, "slope_db_per_octave": slope}
    made, drawn = heard(step, clean, seed)
    if drawn["clipped_share"] == "0":
        assert snr_db(clean, made.samples - clean.samples) == pytest.approx(wanted_db, abs=0.5)


@pytest.mark.parametrize("slope", [-6, -3, 0, 3])
def test_the_noises_slope_is_that_of_its_spectrum(slope: float) -> None:
    clean = tone(300, 20, 16_000, 0.05)
    step = {"_target_": "ColorNoise", "snr_db": 20, "slope_db_per_octave": slope}
    noise = heard(step, clean)[0].samples - clean.samples
    power = np.abs(np.fft.rfft(noise)) ** 2
    hz = np.fft.rfftfreq(len(noise), 1 / 16_000)
    low, high = (10 * np.log10(power[(hz > a) & (hz < 2 * a)].mean()) for a in (500, 2_000))
    assert (high - low) / 2 == pytest.approx(slope, abs=0.5)


def test_noise_of_an_amplitude_has_it_whatever_the_speech() -> None:
    for clean in (tone(300, 2, 16_000, 0.5), tone(300, 2, 16_000, 0.01)):
        made, _ = heard({"_target_": "AmplitudeNoise", "amplitude": 0.01}, clean)
        assert (made.samples - clean.samples).std() == pytest.approx(0.01, rel=0.02)


@pytest.mark.parametrize("wanted_db", [3, 12, 30])
def test_background_sounds_are_mixed_at_the_ratio_and_named(wanted_db: float) -> None:
    clean = vowels()
    names = set()
    for seed in range(12):
        made, drawn = heard(
            {"_target_": "BackgroundSound", "sounds": SOUNDS, "snr_db": wanted_db}, clean, seed
        )
        assert snr_db(clean, made.samples - clean.samples) == pytest.approx(wanted_db, abs=0.5)
        names.add(drawn["sound"])
    assert len(names) > 2 and all(name.endswith(".flac") for name in names)


def test_short_sounds_come_in_bursts_with_gaps() -> None:
    clean = vowels()
    step = {"_target_": "ShortSounds", "sounds": SOUNDS, "snr_db": 0, "gap_s": 0.5}
    made, drawn = heard(step, clean, 2)
    touched = np.abs(made.samples - clean.samples) > 0
    bursts = drawn["bursts"].split("; ")
    assert 1 <= len(bursts) <= 5
    first = round(float(bursts[0].split(" ")[0]) * 24_000)
    assert not touched[:first].any() and touched[first:].any()
    assert touched.mean() < 0.9


def test_a_folder_without_sounds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no .wav"):
        build(condition({"_target_": "BackgroundSound", "sounds": str(tmp_path), "snr_db": 3}))


def through(step: dict[str, object], hz: float, sample_rate_hz: int = 24_000) -> float:
    """Gain in dB of a tone of this frequency."""
    clean = tone(hz, 1, sample_rate_hz)
    inside = slice(sample_rate_hz // 4, -sample_rate_hz // 4)
    return level_db(heard(step, clean)[0].samples[inside]) - level_db(clean.samples[inside])


@pytest.mark.parametrize("sample_rate_hz", [16_000, 24_000, 44_100])
def test_passes_and_stops_have_their_edges(sample_rate_hz: int) -> None:
    def at(step: dict[str, object], *hz: float) -> list[float]:
        return [through(step, f, sample_rate_hz) for f in hz]

    low = {"_target_": "LowPass", "cutoff_hz": 2_000}
    assert at(low, 200, 1_000) == pytest.approx([0, 0], abs=1)
    assert at(low, 2_000)[0] == pytest.approx(-4.5, abs=2) and max(at(low, 4_000)) < -20
    high = {"_target_": "HighPass", "cutoff_hz": 1_000}
    assert at(high, 2_000, 5_000) == pytest.approx([0, 0], abs=1)
    assert at(high, 1_000)[0] == pytest.approx(-4.5, abs=2) and max(at(high, 500, 100)) < -20
    band = {"_target_": "BandPass", "center_hz": 2_000, "width_share": 1}
    assert at(band, 2_000)[0] == pytest.approx(0, abs=1) and max(at(band, 300, 7_000)) < -20
    stop = {"_target_": "BandStop", "center_hz": 2_000, "width_share": 1}
    assert at(stop, 200, 7_000) == pytest.approx([0, 0], abs=1) and max(at(stop, 2_000)) < -20


@pytest.mark.parametrize("gain_db", [-12, 6])
def test_shelves_move_their_side_by_their_gain(gain_db: float) -> None:
    low = {"_target_": "LowShelf", "center_hz": 500, "gain_db": gain_db}
    assert through(low, 60) == pytest.approx(gain_db, abs=1) and through(low, 5_000) == pytest.approx(
        0, abs=0.5
    )
    high = {"_target_": "HighShelf", "center_hz": 2_000, "gain_db": gain_db}
    assert through(high, 200) == pytest.approx(0, abs=0.5)
    assert through(high, 9_000) == pytest.approx(gain_db, abs=1)


def test_an_edge_beyond_the_nyquist_frequency_is_moved_and_recorded() -> None:
    _, drawn = heard({"_target_": "LowPass", "cutoff_hz": 7_500}, vowels(8_000))
    assert float(drawn["cutoff_hz"]) == pytest.approx(3_920)


def test_aliasing_folds_a_tone_back() -> None:
    made, _ = heard({"_target_": "Aliasing", "rate_hz": 8_000}, tone(5_000, 1, 24_000))
    assert frequency_hz(made) == pytest.approx(3_000, abs=5)


def test_few_bits_are_few_levels() -> None:
    made, drawn = heard({"_target_": "BitCrush", "bits": 5}, vowels())
    assert drawn["bits"] == "5" and len(np.unique(made.samples)) <= 2**6


def test_clipping_cuts_its_share() -> None:
    clean = vowels()
    made, drawn = heard({"_target_": "Clipping", "percent": 20}, clean)
    assert float((np.abs(made.samples - clean.samples) > 0).mean()) == pytest.approx(0.2, abs=0.01)
    assert float(drawn["clipped_at"]) == pytest.approx(np.abs(made.samples).max(), rel=1e-4)


@pytest.mark.parametrize("sample_rate_hz", [16_000, 22_050, 24_000, 48_000])
def test_mp3_delays_nothing(sample_rate_hz: int) -> None:
    clean = vowels(sample_rate_hz)
    made, _ = heard({"_target_": "Mp3", "kbit_per_s": 32}, clean)
    lag = np.argmax(np.correlate(made.samples[:8_000], clean.samples[2_000:6_000], "valid")) - 2_000
    assert abs(int(lag)) <= sample_rate_hz // 1_000 or not clean.samples[2_000:6_000].any()
    middle = slice(len(clean.samples) // 4, 3 * len(clean.samples) // 4)
    assert np.corrcoef(made.samples[middle], clean.samples[middle])[0, 1] > 0.9


def test_the_level_moves_from_one_gain_to_the_other() -> None:
    step = {"_target_": "GainTransition", "from_db": -20, "to_db": 0, "over_s": 0.5}
    clean = tone(300, 3)
    made, drawn = heard(step, clean)
    start = float(drawn["start_s"])
    gain = made.samples / np.where(clean.samples == 0, 1, clean.samples)
    rate = clean.sample_rate_hz
    assert gain[1] == pytest.approx(0.1, rel=1e-3) or start == 0
    assert gain[round((start + 0.5) * rate) + 5] == pytest.approx(1.0, rel=1e-3)


def test_packets_are_lost_in_bursts_at_their_rate() -> None:
    clean = tone(300, 120)
    made, drawn = heard({"_target_": "PacketLoss", "percent": 10, "burst_packets": 3}, clean)
    lost = np.abs(made.samples).reshape(-1, 320).max(axis=1) == 0
    assert float(drawn["lost"]) == pytest.approx(lost.mean(), abs=1e-5)
    assert lost.mean() == pytest.approx(0.1, abs=0.03)
    bursts = np.flatnonzero(np.diff(np.r_[0, lost.astype(int), 0]) == 1)
    assert lost.sum() / len(bursts) == pytest.approx(3, abs=0.8)


def test_a_room_decays_by_60_db_in_its_time_and_keeps_the_level_of_speech() -> None:
    click = np.zeros(48_000, np.float32)
    click[:24] = 0.5
    step = {"_target_": "Reverberation", "rt60_s": 0.6, "direct_db": 0}
    room = heard(step, Waveform(samples=click, sample_rate_hz=24_000))[0].samples
    early, late = (level_db(room[a : a + 2_400]) for a in (2_400, 7_200))
    assert early - late == pytest.approx(60 * 0.2 / 0.6, abs=2.5)
    clean = vowels()
    made, drawn = heard(step, clean)
    assert audio.active_rms(made.samples, 24_000) == pytest.approx(
        audio.active_rms(clean.samples, 24_000), rel=1e-3
    )
    assert float(drawn["seconds"]) == pytest.approx(clean.seconds + 0.6, abs=0.01)


def test_air_takes_treble_away() -> None:
    air = {"_target_": "AirAbsorption", "distance_m": 50}
    assert through(air, 300) > -1 > through(air, 8_000) + 2


def digest(seed: int) -> str:
    parts = hashlib.sha256()
    for step in EVERY:
        made, drawn = heard(step, vowels(), seed)
        parts.update(made.samples.tobytes() + repr(sorted(drawn.items())).encode())
    return parts.hexdigest()


def test_one_seed_gives_one_result_in_threads_and_in_another_process() -> None:
    alone = [digest(seed) for seed in (1, 2)]
    assert alone[0] != alone[1]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(digest, [1, 2, 1, 2])) == alone * 2
    code = "from tests.audio.test_condition_family import digest; print(digest(1), digest(2))"
    env = {**os.environ, "PYTHONHASHSEED": "77"}
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == alone
