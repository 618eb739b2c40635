import numpy as np
import pytest

from farm.types import Failure, Waveform
from speech.kokoro import Kokoro
from tests.checkpoints import demo_weights


@pytest.fixture(scope="module")
def voice() -> Kokoro:
    return Kokoro(checkpoint=demo_weights("kokoro"), voice="am_michael")


def test_the_same_text_is_the_same_speech_and_empty_text_a_failure(voice: Kokoro) -> None:
    first, nothing, second = voice.speak(["Good night.", "🙂 ...", "Good night."])
    assert isinstance(first, Waveform)
    assert isinstance(second, Waveform)
    assert first.sample_rate_hz == voice.sample_rate_hz == 24_000
    assert np.array_equal(first.samples, second.samples)
    assert 0.3 < first.seconds < 3
    assert isinstance(nothing, Failure)
    assert nothing.kind == "input_error"


def test_an_unknown_voice_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no Kokoro voice 'alloy'; one of .*af_heart"):
        Kokoro(checkpoint=demo_weights("kokoro"), voice="alloy")
