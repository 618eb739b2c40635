"""Kokoro-82M: natural speech in 54 voices at about real time on a CPU.

Its phonemizer is GPL-3, so it is in the extra: `pip install -e '.[tts]'`.

Invariant: the same text and voice give the same samples (the ONNX export has no random operator).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from farm.checkpoints import local
from farm.types import Failure, Waveform
from speech import onnx
from speech.text import speakable


class Kokoro:
    """One Kokoro voice.

    Args:
        checkpoint: `{path: folder}` with `kokoro-v1.0.int8.onnx` and `voices-v1.0.bin`.
        voice: `af_heart` (American, female), `am_michael` (male), `bf_emma` (British) ...
        speed: 0.5 to 2.0, above 1 is faster.
        language: espeak-ng's name of the phonemes' language, `en-us` or `en-gb`.
        device: `cpu` or `cuda`.

    Raises:
        ValueError: no such voice, or a speed that the model does not take.
        ImportError: kokoro-onnx is not installed.
    """

    version = "1"

    def __init__(
        self,
        *,
        checkpoint: Mapping[str, Any],
        voice: str = "af_heart",
        speed: float = 1.0,
        language: str = "en-us",
        device: str = "cpu",
    ) -> None:
        package = onnx.runner("kokoro_onnx")
        folder = local(checkpoint)
        session = onnx.session(folder / "kokoro-v1.0.int8.onnx", device)
        self._kokoro = package.Kokoro.from_session(session, str(folder / "voices-v1.0.bin"))
        known = self._kokoro.get_voices()
        if voice not in known:
            raise ValueError(f"no Kokoro voice {voice!r}; one of {', '.join(known)}")
        if not 0.5 <= speed <= 2.0:
            raise ValueError(f"Kokoro's speed is between 0.5 and 2.0, not {speed}")
        self._voice, self._speed, self._language = voice, speed, language
        self.sample_rate_hz = int(package.SAMPLE_RATE)

    def speak(self, texts: Sequence[str]) -> list[Waveform | Failure]:
        """Speaks each text; see `speech.types.Synthesiser`."""
        return onnx.each(self._speak, texts)

    def _speak(self, text: str) -> Waveform | Failure:
        spoken = speakable(text)
        phonemes = self._kokoro.tokenizer.phonemize(spoken, self._language) if spoken else ""
        if not any(phoneme.isalpha() for phoneme in phonemes):
            return Failure(kind="input_error", message=f"nothing to speak in {text[:60]!r}")
        samples, sample_rate_hz = self._kokoro.create(
            phonemes, self._voice, speed=self._speed, is_phonemes=True
        )
        return Waveform(samples=np.clip(samples, -1.0, 1.0).astype(np.float32), sample_rate_hz=sample_rate_hz)
