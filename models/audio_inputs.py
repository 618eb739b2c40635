"""Requests as a model's input tensors, by its own processor: one function a way of making them.

Invariant: what a row holds (tokens, audio features) does not depend on the other rows; padding is on the left.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import audio
from farm.types import AudioSegment, Request, TextSegment, Turn, Waveform
from models.conversation import marked, messages, parts, waveforms

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
        known = [field.name for field in fields(cls)]
        if unknown := [str(key) for key in values if key not in known]:
            raise ValueError(f"prompt_format: no setting {', '.join(unknown)}; it has {', '.join(known)}")
        made = cls(**values)
        if made.chat_template not in WAYS:
            raise ValueError(f"prompt_format: chat_template={made.chat_template}: one of {', '.join(WAYS)}")
        return made


def prepare(processor: Any, prompt_format: PromptFormat, requests: Sequence[Request]) -> Inputs:
    """The batch's input tensors, on the CPU."""
    suffix = prompt_format.turn_suffix
    asked = [_with_suffix(request, suffix) for request in requests] if suffix else requests
    return WAYS[prompt_format.chat_template](processor, prompt_format, asked)


def _with_suffix(request: Request, suffix: str) -> Request:
    *before, last = request.turns
    return replace(request, turns=(*before, (*last, TextSegment(role="instruction", text=suffix))))


def _by_processor(processor: Any, prompt_format: PromptFormat, requests: Sequence[Request]) -> Inputs:
    content: Callable[[Turn], Any] = parts
    if prompt_format.audio_marker is not None:
        content = partial(marked, marker=prompt_format.audio_marker)
    texts = [
        processor.apply_chat_template(
            messages(request, content, prompt_format.system_prefix),
            tokenize=False,
            add_generation_prompt=True,
        )
        for request in requests
    ]
    rate = prompt_format.sample_rate_hz
    clips = [audio.resample(w, rate).samples for request in requests for w in waveforms(request)]
    if prompt_format.fit_audio_window and clips:
        _fit_window(processor.feature_extractor, max(map(len, clips)))
    options = dict(prompt_format.processor_options)
    inputs: Inputs = processor(text=texts, audio=clips or None, return_tensors="pt", **options)
    return inputs


def _fit_window(feature_extractor: Any, longest: int) -> None:
    """Makes the window as long as the longest clip.

    A frame beyond the clip's end sees as much silence as in the full window, so that the features do not depend on
    which clip of a batch is the longest.
    """
    hop = feature_extractor.hop_length
    feature_extractor.n_samples = -(-(longest + feature_extractor.n_fft) // hop) * hop


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
