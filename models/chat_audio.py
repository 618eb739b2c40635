"""Speech in, text out, by any audio model of transformers that has a processor with a chat template.

A new such model is a YAML: its class, and the few ways in which processors differ (`models.audio_inputs.PromptFormat`).

Invariant: in float32 a reply depends on its request alone, whatever the batch; nothing of how it is drawn comes from
the checkpoint. A prompt that does not fit the context is an `input_error` of that request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from farm.types import Event, Failure, Reply, Request
from models import loading
from models.audio_inputs import Inputs, PromptFormat, prepare
from models.conversation import noise_request
from models.decoding import Generation, RowSampler, cut

WARM_UP_S = 1.0


class ChatAudio:
    """One checkpoint; answers in text.

    Args:
        checkpoint: A Hugging Face folder (`path`), or `repo` and `revision`.
        model_class: Of transformers, as `Qwen2AudioForConditionalGeneration`.
        prompt_format: The fields of `models.audio_inputs.PromptFormat`.
        generation: The settings of `models.decoding.Generation`; nothing is taken from the checkpoint's own.
        dtype: `float32`, `bfloat16` or `float16`.
        attention: `sdpa`, `eager` or `flash_attention_2`.
        device_map: `auto` spreads the model over all visible GPUs; None puts it on one device.
        device: torch's name.

    Raises:
        ValueError: wrong settings, or a checkpoint that lies nowhere.
    """

    version = "1"

    @classmethod
    def check(cls, arguments: Mapping[str, Any]) -> None:
        """Refuses settings before anything is loaded; raises ValueError."""
        loading.check(arguments)
        Generation.parse(arguments.get("generation", {}))
        PromptFormat.parse(arguments.get("prompt_format", {}))

    def __init__(
        self,
        *,
        checkpoint: Mapping[str, Any],
        model_class: str,
        prompt_format: Mapping[str, Any],
        generation: Mapping[str, Any],
        dtype: str,
        attention: str,
        device_map: str | None = None,
        device: str = "cpu",
    ) -> None:
        placement = loading.Placement(dtype=dtype, attention=attention, device=device, device_map=device_map)
        self._format = PromptFormat.parse(prompt_format)
        self._generation = Generation.parse(generation)
        self._processor = loading.load_processor(checkpoint)
        self._model = loading.load(model_class, checkpoint, placement)
        self._stops = loading.stop_tokens(self._model, self._processor.tokenizer)
        loading.forget_sampling(self._model, self._processor.tokenizer, self._stops)
        self._room = loading.context_tokens(self._model) - self._generation.max_new_tokens
        self._warm_up()

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers a batch; see `farm.types.SpeechModel`."""
        inputs = prepare(self._processor, self._format, requests)
        fitting = answer_what_fits(inputs, requests, self._room, self.answer)
        return self._answer(requests, inputs) if fitting is None else fitting

    def _answer(self, requests: Sequence[Request], inputs: Inputs) -> list[Reply]:
        started_s = time.perf_counter()
        written = write(self._model, inputs, [r.seed for r in requests], self._generation)
        return text_replies(self._processor, inputs, written, self._stops, started_s)

    def _warm_up(self) -> None:
        """One short reply: kernels are compiled and chosen now, and a wrong prompt format ends the loading."""
        requests = [noise_request(WARM_UP_S, self._format.sample_rate_hz)]
        inputs = prepare(self._processor, self._format, requests)
        write(self._model, inputs, [0], replace(self._generation, max_new_tokens=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What `generate` made of a batch."""

    tokens: list[list[int]]
    """Of each row, beyond its prompt; after a row's stop token comes padding."""
    first_token_at_s: float
    """`time.perf_counter()` when all rows had their first token."""


def write(model: Any, inputs: Inputs, seeds: Sequence[int], generation: Generation, **more: Any) -> Written:
    """Continues every row of a prepared batch.

    Args:
        model: Of transformers, its sampling settings forgotten (`models.loading.forget_sampling`).
        inputs: From `models.audio_inputs.prepare`.
        seeds: Of each row's sampling.
        generation: Limit, temperature, top_p and top_k.
        more: Further arguments of `generate`.
    """
    import torch

    sampler = RowSampler(seeds, generation)
    placed = {name: _placed(value, model) for name, value in inputs.items()}
    with torch.inference_mode():
        sequences = model.generate(
            **placed,
            do_sample=False,
            max_new_tokens=generation.max_new_tokens,
            logits_processor=[sampler],
            **more,
        )
    assert sampler.first_token_at_s is not None, "generate made no token"
    tokens = sequences[:, inputs["input_ids"].shape[1] :].tolist()
    return Written(tokens=tokens, first_token_at_s=sampler.first_token_at_s)


def _placed(value: Any, model: Any) -> Any:
    """A tensor on the model's device, in its precision where it holds audio features."""
    import torch

    if not torch.is_tensor(value):
        return value
    return value.to(model.device, model.dtype) if value.is_floating_point() else value.to(model.device)


def text_replies(
    processor: Any, inputs: Inputs, written: Written, stops: frozenset[int], started_s: float
) -> list[Reply]:
    """A reply a row: its text, token counts, and when its first token was there."""
    prompt_tokens = inputs["attention_mask"].sum(dim=-1).tolist()
    first_token = Event(
        t_s=written.first_token_at_s - started_s, clock="wall", actor="model", kind="first_token"
    )
    replies = []
    for count, row in zip(prompt_tokens, written.tokens, strict=True):
        tokens, truncated = cut(row, stops)
        text = processor.tokenizer.decode(tokens, skip_special_tokens=True).strip()
        replies.append(
            Reply(
                text=text,
                events=(first_token,),
                tokens_in=count,
                tokens_out=len(tokens),
                truncated=truncated,
            )
        )
    return replies


def answer_what_fits(
    inputs: Inputs,
    requests: Sequence[Request],
    room: int,
    again: Callable[[Sequence[Request]], list[Reply]],
) -> list[Reply] | None:
    """Fails the requests whose prompt leaves no room in the context, and answers the others.

    Args:
        inputs: Of all requests.
        requests: The batch.
        room: Tokens that a prompt may have.
        again: Answers requests that all fit.

    Returns:
        None where all fit: then nothing needs to be prepared again.
    """
    counts = inputs["attention_mask"].sum(dim=-1).tolist()
    if max(counts) <= room:
        return None
    fits = [count <= room for count in counts]
    kept = [request for request, fit in zip(requests, fits, strict=True) if fit]
    answered = iter(again(kept) if kept else [])
    return [
        next(answered)
        if fit
        else Reply(
            failure=Failure(kind="input_error", message=f"{count} tokens; the context has room for {room}")
        )
        for count, fit in zip(counts, fits, strict=True)
    ]
