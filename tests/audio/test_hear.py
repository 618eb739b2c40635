"""From files to what a model hears: the condition acts on questions, examples stay clean, errors name the file."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

import audio
from audio.conditions import apply
from farm.types import AudioSegment, Joining, Request, TextSegment, Waveform
from tests.audio.signals import condition, tone, vowels, write

NOISY = condition({"_target_": "WhiteNoise", "snr_db": 10})


def segment(path: Path, role: str = "question", waveform: Waveform | None = None) -> AudioSegment:
    """A segment whose file is written first where a waveform is given."""
    if waveform:
        soundfile.write(path, waveform.samples, waveform.sample_rate_hz, subtype="FLOAT")
    return AudioSegment(role=role, path=str(path), sha256="", seconds=0.0)


def request(*segments: AudioSegment | TextSegment) -> Request:
    return Request(system="s", turns=(segments,), trial_id="t", seed=3)


def waveforms(heard: Request) -> list[Waveform]:
    found = [s.waveform for turn in heard.turns for s in turn if isinstance(s, AudioSegment)]
    assert all(found)
    return [w for w in found if w]


def test_the_question_is_heard_under_the_condition_and_the_rest_is_kept(tmp_path: Path) -> None:
    asked = request(segment(tmp_path / "q.wav", waveform=vowels()), TextSegment(role="options", text="A. B."))
    heard, drawn = audio.hear(asked, NOISY, 9)
    expected, values = apply(NOISY, vowels(), 9)
    np.testing.assert_array_equal(waveforms(heard)[0].samples, expected.samples)
    assert drawn == values
    assert (heard.system, heard.trial_id, heard.seed) == ("s", "t", 3)
    assert heard.turns[0][1] == asked.turns[0][1]
    assert heard.seconds == vowels().seconds


def test_examples_and_silence_are_decoded_but_not_degraded(tmp_path: Path) -> None:
    silence = Waveform(samples=np.zeros(8_000, np.float32), sample_rate_hz=16_000)
    asked = request(
        segment(tmp_path / "e.wav", "example_question", vowels()),
        segment(tmp_path / "s.wav", "silence", silence),
        segment(tmp_path / "q.wav", "question", vowels()),
    )
    example, pause, question = waveforms(audio.hear(asked, NOISY, 1)[0])
    np.testing.assert_array_equal(example.samples, vowels().samples)
    np.testing.assert_array_equal(pause.samples, silence.samples)
    np.testing.assert_array_equal(question.samples, apply(NOISY, vowels(), 1)[0].samples)


def test_questions_of_several_turns_get_noise_of_their_own_and_records_apart(tmp_path: Path) -> None:
    first, second = (segment(tmp_path / name, waveform=vowels()) for name in ("1.wav", "2.wav"))
    asked = Request(system="", turns=((first,), (second,)))
    heard, drawn = audio.hear(asked, NOISY, 1)
    one, two = waveforms(heard)
    assert not np.array_equal(one.samples, two.samples)
    assert drawn["question0.snr_db"] == drawn["question1.snr_db"] == "10"


def test_models_of_different_rates_hear_one_noise(tmp_path: Path) -> None:
    asked = request(segment(tmp_path / "q.wav", waveform=vowels(48_000)))
    own, narrow = (waveforms(audio.hear(asked, NOISY, 1, rate)[0])[0] for rate in (None, 16_000))
    assert (own.sample_rate_hz, narrow.sample_rate_hz) == (48_000, 16_000)
    np.testing.assert_array_equal(audio.resample(own, 16_000).samples, narrow.samples)


@pytest.mark.parametrize("role", ["question", "example_answer"])
def test_a_silent_file_is_an_error_that_names_it(tmp_path: Path, role: str) -> None:
    silence = Waveform(samples=np.zeros(8_000, np.float32), sample_rate_hz=16_000)
    asked = request(segment(tmp_path / "quiet.wav", role, silence))
    with pytest.raises(ValueError, match=r"quiet\.wav: silent"):
        audio.hear(asked, condition(), 1)


def test_a_bad_or_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    text = segment(write(tmp_path / "text.wav", b"no audio" * 99))
    with pytest.raises(ValueError, match=r"text\.wav: cannot be decoded"):
        audio.hear(request(text), condition(), 1)
    with pytest.raises(ValueError, match=r"gone\.wav: no such file"):
        audio.hear(request(segment(tmp_path / "gone.wav")), condition(), 1)


def test_audio_too_short_for_the_condition_is_an_error_that_names_it(tmp_path: Path) -> None:
    click = Waveform(samples=np.array([0.5, -0.5], np.float32), sample_rate_hz=48_000)
    asked = request(segment(tmp_path / "click.wav", waveform=click))
    with pytest.raises(ValueError, match=r"click\.wav: too short"):
        audio.hear(asked, condition({"_target_": "TelephoneBand"}), 1)


def test_a_text_only_request_passes_through() -> None:
    asked = request(TextSegment(role="question", text="Hello?"))
    assert audio.hear(asked, NOISY, 1) == (asked, {})


def test_hearing_in_threads_gives_what_hearing_alone_gives(tmp_path: Path) -> None:
    asked = [request(segment(tmp_path / f"{n}.wav", waveform=vowels(pitch_hz=100 + n))) for n in range(12)]
    shifted = condition(
        {"_target_": "PitchShift", "semitones": [-5, 5]}, {"_target_": "WhiteNoise", "snr_db": 5}
    )
    alone = [waveforms(audio.hear(r, shifted, n)[0])[0].samples for n, r in enumerate(asked)]
    with ThreadPoolExecutor(6) as pool:
        together = list(
            pool.map(lambda n: waveforms(audio.hear(asked[n], shifted, n)[0])[0].samples, range(12))
        )
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_a_quiet_but_not_silent_file_is_heard(tmp_path: Path) -> None:
    quiet = tone(300, 1, amplitude=0.001)
    heard, drawn = audio.hear(request(segment(tmp_path / "q.wav", waveform=quiet)), NOISY, 1)
    assert len(waveforms(heard)[0].samples) == 16_000
    assert drawn["snr_db"] == "10"


# --- a spoken prompt ---------------------------------------------------------------------------------------------


def pause(seconds: float) -> AudioSegment:
    return AudioSegment(role="silence", path="", sha256="", seconds=seconds)


def prompt(tmp_path: Path, keep_last_s: float | None = None) -> Request:
    """An example at 24 kHz, its answer at 48 kHz, a question at 24 kHz, a second of silence between them."""
    return Request(
        system=None,
        turns=(
            (
                segment(tmp_path / "e.wav", "example_question", vowels()),
                pause(1),
                segment(tmp_path / "a.wav", "example_answer", tone(440, 0.5, 48_000)),
                pause(1),
                segment(tmp_path / "q.wav", "question", vowels(pitch_hz=200)),
                TextSegment(role="instruction", text="Answer."),
            ),
        ),
        joined=Joining(keep_last_s=keep_last_s),
    )


def test_a_spoken_prompt_becomes_one_recording_at_the_questions_rate(tmp_path: Path) -> None:
    heard, drawn = audio.hear(prompt(tmp_path), condition(), 1)
    (whole,) = waveforms(heard)
    rate, example, question = 24_000, vowels().samples, vowels(pitch_hz=200).samples
    assert whole.sample_rate_hz == rate
    assert len(whole.samples) == len(example) + rate + rate // 2 + rate + len(question)
    np.testing.assert_array_equal(whole.samples[: len(example)], example)
    assert not whole.samples[len(example) : len(example) + rate].any()
    np.testing.assert_array_equal(whole.samples[-len(question) :], question)
    assert [getattr(s, "role", "") for s in heard.turns[0]] == ["question", "instruction"]
    assert "cut_s" not in drawn
    assert heard.seconds == whole.seconds


def test_only_the_last_seconds_are_kept_and_the_cut_is_recorded(tmp_path: Path) -> None:
    complete = waveforms(audio.hear(prompt(tmp_path), condition(), 1)[0])[0]
    heard, drawn = audio.hear(prompt(tmp_path, 3.5), condition(), 1)
    (whole,) = waveforms(heard)
    assert whole.seconds == 3.5 == heard.seconds
    np.testing.assert_array_equal(whole.samples, complete.samples[-len(whole.samples) :])
    assert float(drawn["cut_s"]) == pytest.approx(complete.seconds - 3.5, rel=1e-5)


def test_a_condition_acts_before_joining_on_the_question_alone_or_on_all_speech(tmp_path: Path) -> None:
    on_all = replace(NOISY, acts_on="all")
    plain, one, every = (
        waveforms(audio.hear(prompt(tmp_path), c, 5)[0])[0].samples for c in (condition(), NOISY, on_all)
    )
    question = len(vowels(pitch_hz=200).samples)
    example = len(vowels().samples)
    np.testing.assert_array_equal(one[:-question], plain[:-question])
    np.testing.assert_array_equal(one[-question:], every[-question:])
    assert not np.array_equal(every[:example], plain[:example])
    assert not every[example : example + 24_000].any()
    _, drawn = audio.hear(prompt(tmp_path), on_all, 5)
    assert {"snr_db", "example0.snr_db", "example1.snr_db"} <= drawn.keys()
