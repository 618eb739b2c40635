"""Whisper (Radford et al., arXiv:2212.04356), two runners: CTranslate2 for CPUs, transformers for GPUs.

Invariant: greedy or beam search at temperature 0, no window conditioned on the text before it: the same audio gives the
same transcript whatever else is in the batch, and one bad window cannot poison the next. Silence is heard as nothing,
without asking the model, which would invent words ("You").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import audio
from farm.checkpoints import source
from farm.types import Failure, Waveform
from speech.types import Transcript

SAMPLE_RATE_HZ = 16_000
WINDOW_S = 30.0
"""Whisper hears windows of this length; longer audio is several."""


class FasterWhisper:
    """Whisper by CTranslate2 (faster-whisper): int8 on a CPU takes a tenth of real time for tiny models.

    Args:
        checkpoint: A CTranslate2 folder (`path`), or a hub repository of one.
        language: `en`, `zh` ...; None detects it, clip by clip.
        compute_type: CTranslate2's, `int8` or `float16`.
        beam_size: 1 is greedy.
        initial_prompt: Text that biases the spelling, e.g. towards simplified characters.
        device: `cpu` or `cuda`.
    """

    version = "1"

    def __init__(
        self,
        *,
        checkpoint: Mapping[str, Any],
        language: str | None = None,
        compute_type: str = "int8",
        beam_size: int = 5,
        initial_prompt: str | None = None,
        device: str = "cpu",
    ) -> None:
        from faster_whisper import WhisperModel

        name, revision = source(checkpoint)
        self._model = WhisperModel(name, revision=revision, device=device, compute_type=compute_type)
        self._options = {"language": language, "beam_size": beam_size, "initial_prompt": initial_prompt}

    def transcribe(self, waveforms: Sequence[Waveform]) -> list[Transcript | Failure]:
        """Transcribes each waveform; see `speech.types.Recogniser`."""
        return [self._transcribe(waveform) for waveform in waveforms]

    def _transcribe(self, waveform: Waveform) -> Transcript | Failure:
        samples = _samples(waveform)
        if not isinstance(samples, np.ndarray):
            return samples
        segments, _ = self._model.transcribe(
            samples, temperature=0.0, condition_on_previous_text=False, **self._options
        )
        return Transcript(text="".join(segment.text for segment in segments).strip())


class TransformersWhisper:
    """Whisper by transformers: the batch goes through the encoder at once, as a GPU likes it.

    Args:
        checkpoint: A Hugging Face folder (`path`), or `repo` and `revision`.
        language: `en`, `zh` ...; None detects it. English-only checkpoints ignore it.
        dtype: `float32`, `bfloat16` or `float16`.
        attention: `sdpa`, `eager` or `flash_attention_2`.
        beam_size: 1 is greedy.
        device: torch's name.
    """

    version = "1"

    def __init__(
        self,
        *,
        checkpoint: Mapping[str, Any],
        language: str | None = None,
        dtype: str = "bfloat16",
        attention: str = "sdpa",
        beam_size: int = 1,
        device: str = "cpu",
    ) -> None:
        from transformers import AutoProcessor, WhisperForConditionalGeneration

        name, revision = source(checkpoint)
        self._processor = AutoProcessor.from_pretrained(name, revision=revision)
        model = WhisperForConditionalGeneration.from_pretrained(
            name, revision=revision, dtype=dtype, attn_implementation=attention
        )
        self._model = model.to(device).eval()
        multilingual = getattr(model.generation_config, "is_multilingual", False)
        self._options: dict[str, Any] = {"num_beams": beam_size, "do_sample": False}
        if multilingual:
            self._options |= {"language": language, "task": "transcribe"}

    def transcribe(self, waveforms: Sequence[Waveform]) -> list[Transcript | Failure]:
        """Transcribes each waveform; those over 30 s one at a time, window by window."""
        heard = [_samples(waveform) for waveform in waveforms]
        short: list[int] = []
        results: list[Transcript | Failure | None] = [None] * len(heard)
        for index, samples in enumerate(heard):
            if not isinstance(samples, np.ndarray):
                results[index] = samples
            elif len(samples) <= WINDOW_S * SAMPLE_RATE_HZ:
                short.append(index)
            else:
                results[index] = self._generate([samples], long=True)[0]
        together = self._generate([heard[index] for index in short], long=False) if short else []
        for index, transcript in zip(short, together, strict=True):
            results[index] = transcript
        return [result for result in results if result is not None]

    def _generate(self, clips: Sequence[Any], *, long: bool) -> list[Transcript]:
        import torch

        whole = {"truncation": False, "padding": "longest"} if long else {}
        inputs = self._processor(
            clips, sampling_rate=SAMPLE_RATE_HZ, return_tensors="pt", return_attention_mask=True, **whole
        ).to(self._model.device)
        with torch.inference_mode():
            tokens = self._model.generate(
                inputs.input_features.to(self._model.dtype),
                attention_mask=inputs.attention_mask,
                return_timestamps=long,
                **self._options,
            )
        texts = self._processor.batch_decode(tokens, skip_special_tokens=True)
        return [Transcript(text=text.strip()) for text in texts]


def _samples(waveform: Waveform) -> npt.NDArray[np.float32] | Transcript | Failure:
    """What the model is to hear, at its rate; or the result, where there is nothing to hear."""
    if not len(waveform.samples):
        return Failure(kind="input_error", message="a waveform without samples")
    try:
        audio.active_rms(waveform.samples, waveform.sample_rate_hz)
    except ValueError:
        return Transcript(text="")
    return audio.resample(waveform, SAMPLE_RATE_HZ).samples
