"""Parts of a cascade whose results show what they were given; some inputs make them fail."""

from collections.abc import Sequence

import numpy as np

from farm.types import Failure, Waveform
from models.language import Chat, Completion
from speech.types import Transcript


class CountingRecogniser:
    """Hears the number of samples; fails on a clip of 13."""

    version = "1"

    def __init__(self, *, device: str) -> None:
        assert device == "cpu"

    def transcribe(self, waveforms: Sequence[Waveform]) -> list[Transcript | Failure]:
        return [self._one(len(waveform.samples)) for waveform in waveforms]

    def _one(self, frames: int) -> Transcript | Failure:
        if frames == 13:
            return Failure(kind="model_error", message="unlucky")
        return Transcript(text=f"{frames} samples" if frames else "")


class RepeatingModel:
    """Answers with what it was given."""

    version = "1"

    def __init__(self, *, device: str) -> None:
        assert device == "cpu"

    def complete(self, chats: Sequence[Chat]) -> list[Completion | Failure]:
        return [
            Completion(
                text=f"[{chat.system}|{chat.user}|{chat.seed}]",
                tokens_in=len(chat.user),
                tokens_out=7,
                truncated=chat.seed == 3,
                first_token_s=0.25,
            )
            for chat in chats
        ]


class BeepingSynthesiser:
    """A sample a letter; cannot say "silent", breaks on "broken"."""

    version = "1"
    sample_rate_hz = 8_000

    def __init__(self, *, device: str) -> None:
        assert device == "cpu"

    def speak(self, texts: Sequence[str]) -> list[Waveform | Failure]:
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Waveform | Failure:
        if "silent" in text:
            return Failure(kind="input_error", message="nothing to speak")
        if "broken" in text:
            return Failure(kind="model_error", message="out of breath")
        return Waveform(samples=np.ones(len(text), dtype=np.float32), sample_rate_hz=self.sample_rate_hz)
