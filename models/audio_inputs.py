"""Requests as a model's input tensors, by its own processor: one function a way of making them.

Invariant: what a row holds (tokens, audio features) does not depend on the other rows; padding is on the left.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import audio
from farm.settings import built
from farm.types import AudioSegment, Request, TextSegment, Turn, Waveform
from models.conversation import marked, messages, parts, waveforms

Samples = npt.NDArray[np.float32]

Inputs = Mapping[str, Any]
"""Name -> tensor, as the model's `generate` takes them; `input_ids` and `attention_mask` among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFormat:
    """How requests are put to a processor; one for each family, in its YAML."""

    chat_template: str = "processor"
    """`processor`: its own template and call. `mistral_common`: Mistral's tokenizer does both, from messages."""
    sample_rate_hz: int = 16000
    """What the processor takes."""
    audio_marker: str | None = None
    """For templates that take text only: what stands for audio in it. None: audio is a part of the content."""
    system_prefix: str = ""
    """Comes before every system prompt: what the model was trained to read there."""
    turn_suffix: str = ""
    """Text that ends every user turn: what the model was trained to be asked for."""
    processor_options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the processor's call."""
    fit_audio_window: bool = False
    """Pads features to the batch's longest clip, not to the processor's window (300 s for Qwen2.5-Omni)."""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> PromptFormat:
        """The settings of a configuration.

        Raises:
            ValueError: an unknown key, or a value that is none of its choices.
        """
        made = built(cls, values, "prompt_format")
        if made.sample_rate_hz < 1:
            raise ValueError(f"prompt_format: sample_rate_hz={made.sample_rate_hz}: at least 1")
        if made.chat_template not in WAYS:
            raise ValueError(f"prompt_format: chat_template={made.chat_template}: one of {', '.join(WAYS)}")
        return made


def prepare(processor: Any, prompt_format: PromptFormat, requests: Sequence[Request]) -> Inputs:
    """The batch's input tensors, on the CPU."""
    asked = [with_suffix(prompt_format, request) for request in requests]
    return WAYS[prompt_format.chat_template](processor, prompt_format, asked)


def with_suffix(prompt_format: PromptFormat, request: Request) -> Request:
    """The request with the text that ends its user turn."""
    if not prompt_format.turn_suffix:
        return request
    *before, last = request.turns
    ending = TextSegment(role="instruction", text=prompt_format.turn_suffix)
    return replace(request, turns=(*before, (*last, ending)))


def prompt_text(processor: Any, prompt_format: PromptFormat, request: Request) -> str:
    """The request as its processor's chat template writes it, up to where the reply begins."""
    content: Callable[[Turn], Any] = parts
    if prompt_format.audio_marker is not None:
        content = partial(marked, marker=prompt_format.audio_marker)
    text: str = processor.apply_chat_template(
        messages(request, content, prompt_format.system_prefix), tokenize=False, add_generation_prompt=True
    )
    return text


def clips(prompt_format: PromptFormat, request: Request) -> list[Samples]:
    """The request's audio in order, at the processor's rate."""
    return [audio.resample(w, prompt_format.sample_rate_hz).samples for w in waveforms(request)]


def _by_processor(processor: Any, prompt_format: PromptFormat, requests: Sequence[Request]) -> Inputs:
    texts = [prompt_text(processor, prompt_format, request) for request in requests]
    heard = [clip for request in requests for clip in clips(prompt_format, request)]
    if prompt_format.fit_audio_window and heard:
        processor.feature_extractor.n_samples = window(processor.feature_extractor, max(map(len, heard)))
    options = dict(prompt_format.processor_options)
    inputs: Inputs = processor(text=texts, audio=heard or None, return_tensors="pt", **options)
    return inputs


def window(feature_extractor: Any, longest: int) -> int:
    """Samples of a window that the longest clip fits in.

    A frame beyond the clip's end sees as much silence as in the full window, so that the features do not depend on
    which clip of a batch is the longest.
    """
    hop = feature_extractor.hop_length
    samples: int = -(-(longest + feature_extractor.n_fft) // hop) * hop
    return samples


def _by_mistral_common(processor: Any, prompt_format: PromptFormat, requests: Sequence[Request]) -> Inputs:
    content = partial(_encoded_parts, sample_rate_hz=prompt_format.sample_rate_hz)
    conversations = [messages(request, content, prompt_format.system_prefix) for request in requests]
    inputs: Inputs = processor.apply_chat_template(conversations)
    return inputs


def _encoded_parts(turn: Turn, sample_rate_hz: int) -> list[dict[str, str]]:
    encoded = []
    for segment in turn:
        if isinstance(segment, AudioSegment):
            assert segment.waveform is not None, "a request reaches a model only after its audio was heard"
            clip = audio.resample(segment.waveform, sample_rate_hz)
            encoded.append({"type": "audio", "base64": _float_wav(clip)})
        else:
            encoded.append({"type": "text", "text": segment.text})
    return encoded


def chat_parts(turn: Turn, sample_rate_hz: int) -> list[dict[str, Any]]:
    """The turn's segments as a chat server takes them: samples unchanged, as WAV."""
    return [
        {"type": "input_audio", "input_audio": {"data": part["base64"], "format": "wav"}}
        if part["type"] == "audio"
        else part
        for part in _encoded_parts(turn, sample_rate_hz)
    ]


def _float_wav(waveform: Waveform) -> str:
    """A WAV of 32-bit floats as base64: the samples arrive unchanged."""
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, waveform.samples, waveform.sample_rate_hz, format="WAV", subtype="FLOAT")
    return base64.b64encode(buffer.getvalue()).decode()


WAYS: Mapping[str, Callable[[Any, PromptFormat, Sequence[Request]], Inputs]] = {
    "processor": _by_processor,
    "mistral_common": _by_mistral_common,
}
