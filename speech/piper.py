"""Piper voices (VITS): fast speech on a CPU. The code is GPL-3: `pip install -e '.[tts]'`.

Invariant: without noise scales the same text gives the same samples, in every call and every process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from farm.checkpoints import local
from farm.types import Failure, Waveform
from speech import onnx
from speech.text import speakable

MAX_PHONEMES = 400
"""Phonemes in one pass, about 10 s: memory grows with them, and an unbroken sentence of 12,000 took more than 20 GB."""
PEAK = 0.95
"""Of each utterance: voices come out quiet (0.1 to 0.2), and full scale would look clipped to a quality scorer."""


class Piper:
    """One Piper voice.

    Args:
        checkpoint: `{path: folder}` with one `*.onnx` and its `*.onnx.json`.
        noise_scale: Of the decoder's noise; above 0 speech differs from call to call.
        noise_w_scale: Of the durations' noise.
        length_scale: Above 1 is slower.
        device: `cpu` or `cuda`.

    Raises:
        ValueError: the folder does not hold exactly one voice.
        ImportError: piper-tts is not installed.
    """

    version = "1"

    def __init__(
        self,
        *,
        checkpoint: Mapping[str, Any],
        noise_scale: float = 0.0,
        noise_w_scale: float = 0.0,
        length_scale: float = 1.0,
        device: str = "cpu",
    ) -> None:
        package = onnx.runner("piper")
        folder = local(checkpoint)
        models = sorted(folder.glob("*.onnx"))
        if len(models) != 1:
            raise ValueError(f"{folder} holds {len(models)} *.onnx files; a Piper voice is exactly one")
        config = json.loads(models[0].with_name(f"{models[0].name}.json").read_text(encoding="utf-8"))
        self._voice = package.PiperVoice(
            config=package.PiperConfig.from_dict(config), session=onnx.session(models[0], device)
        )
        self._settings = package.SynthesisConfig(
            noise_scale=noise_scale, noise_w_scale=noise_w_scale, length_scale=length_scale
        )
        self.sample_rate_hz = int(self._voice.config.sample_rate)

    def speak(self, texts: Sequence[str]) -> list[Waveform | Failure]:
        """Speaks each text; see `speech.types.Synthesiser`."""
        return onnx.each(self._speak, texts)

    def _speak(self, text: str) -> Waveform | Failure:
        spoken = speakable(text)
        pieces = [self._samples(piece) for piece in self._pieces(spoken)] if spoken else []
        if not pieces:
            return Failure(kind="input_error", message=f"nothing to speak in {text[:60]!r}")
        samples = np.concatenate(pieces)
        peak = float(np.abs(samples).max())
        scaled = samples * (PEAK / peak) if peak > 0 else samples
        return Waveform(samples=scaled.astype(np.float32), sample_rate_hz=self.sample_rate_hz)

    def _pieces(self, text: str) -> Iterator[list[str]]:
        for sentence in self._voice.phonemize(text):
            yield from pieces(sentence, MAX_PHONEMES)

    def _samples(self, phonemes: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        ids = self._voice.phonemes_to_ids(phonemes)
        return np.atleast_1d(self._voice.phoneme_ids_to_audio(ids, self._settings))


def pieces(phonemes: Sequence[str], most: int) -> Iterator[list[str]]:
    """Cuts a sentence's phonemes after spaces into pieces of at most `most`; inside a word only where it is longer."""
    rest = list(phonemes)
    while len(rest) > most:
        cut = next((i + 1 for i in range(most - 1, 0, -1) if rest[i] == " "), most)
        yield rest[:cut]
        rest = rest[cut:]
    if rest:
        yield rest
