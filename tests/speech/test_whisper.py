from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from farm.types import Failure, Waveform
from speech.piper import Piper
from speech.types import Recogniser, Transcript
from speech.whisper import FasterWhisper, TransformersWhisper
from tests.checkpoints import demo_weights, tiny_whisper

SENTENCES = ["It is raining and I forgot my coat.", "My alarm did not ring this morning."]
EMPTY = Waveform(samples=np.zeros(0, dtype=np.float32), sample_rate_hz=16_000)


def chirp(seconds: float, frequency_hz: float, sample_rate_hz: int = 16_000) -> Waveform:
    t = np.arange(round(seconds * sample_rate_hz)) / sample_rate_hz
    samples = 0.3 * np.sin(2 * np.pi * frequency_hz * t * (1 + 0.2 * np.sin(5 * t)))
    return Waveform(samples=samples.astype(np.float32), sample_rate_hz=sample_rate_hz)


def texts(found: Sequence[Transcript | Failure]) -> list[str]:
    assert all(isinstance(transcript, Transcript) for transcript in found), found
    return [transcript.text for transcript in found if isinstance(transcript, Transcript)]


@pytest.fixture(scope="module")
def real() -> FasterWhisper:
    return FasterWhisper(checkpoint=demo_weights("whisper-tiny.en-ct2"), language="en")


@pytest.fixture(scope="module")
def speech() -> list[Waveform]:
    spoken = Piper(checkpoint=demo_weights("piper-joe")).speak(SENTENCES)
    return [waveform for waveform in spoken if isinstance(waveform, Waveform)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TransformersWhisper:
    checkpoint = tiny_whisper(tmp_path_factory.mktemp("whisper"))
    return TransformersWhisper(checkpoint=checkpoint, dtype="float32")


def test_real_whisper_hears_the_words_at_any_rate(real: FasterWhisper, speech: list[Waveform]) -> None:
    assert texts(real.transcribe(speech)) == SENTENCES


def test_real_whisper_hears_nothing_in_silence_though_the_model_would(real: FasterWhisper) -> None:
    silence = Waveform(samples=np.zeros(48_000, dtype=np.float32), sample_rate_hz=16_000)
    assert texts(real.transcribe([silence])) == [""]


def test_real_whisper_hears_past_its_window(real: FasterWhisper, speech: list[Waveform]) -> None:
    pause = np.zeros(2 * 22_050, dtype=np.float32)
    samples = np.concatenate([part for _ in range(5) for wave in speech for part in (wave.samples, pause)])
    long = Waveform(samples=samples, sample_rate_hz=22_050)
    assert long.seconds > 32
    assert texts(real.transcribe([long]))[0].lower().count("morning") == 5


def test_a_clip_alone_is_heard_as_in_a_batch(tiny: TransformersWhisper) -> None:
    clips = [chirp(2, 200), chirp(5, 400, 44_100), chirp(1, 900), chirp(4, 600), chirp(35, 300)]
    together = texts(tiny.transcribe(clips))
    assert together == [texts(tiny.transcribe([clip]))[0] for clip in clips]
    assert texts(tiny.transcribe(clips[::-1])) == together[::-1]
    assert len(set(together)) > 2, "the tiny model should not say the same of everything"


def test_a_clip_without_samples_fails_alone(tiny: TransformersWhisper) -> None:
    found = tiny.transcribe([chirp(1, 200), EMPTY, chirp(1, 400)])
    assert [isinstance(result, Failure) for result in found] == [False, True, False]


def test_real_whisper_fails_on_a_clip_without_samples(real: FasterWhisper) -> None:
    recogniser: Recogniser = real
    (failure,) = recogniser.transcribe([EMPTY])
    assert isinstance(failure, Failure)
    assert failure.kind == "input_error"


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no checkpoint at"):
        FasterWhisper(checkpoint={"path": str(tmp_path / "gone")})
