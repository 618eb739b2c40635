"""Chat language models by transformers: messages in, replies out, each row on its own.

Invariant: what the model reads is its own chat template with exactly two turns, the system prompt and the user's text.
An empty system prompt is an empty system turn: left out, many templates (SmolLM2, Qwen2.5) put one of their own there,
and "no instruction" would be "You are a helpful AI assistant named SmolLM". (EchoMind's P1 hands over `""` as well.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from farm.checkpoints import source
from farm.types import Failure
from models import loading
from models.decoding import Generation, decode

TEMPLATE_DATE = "26 Jul 2024"
"""Llama 3's templates can print today's date; their own fixed default instead, so that no reply depends on the day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """One question to a language model."""

    system: str
    user: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One reply of a language model."""

    text: str
    """Stripped, without special tokens."""
    tokens_in: int
    tokens_out: int
    """Without the stop token."""
    truncated: bool
    first_token_s: float
    """Seconds from the call."""


class LanguageModel(Protocol):
    """Text to text; batch in, batch out, one result per input in order."""

    version: str

    def complete(self, chats: Sequence[Chat]) -> list[Completion | Failure]:
        """Answers every chat; a prompt that does not fit the context is an `input_error`."""
        ...


class TransformersChat:
    """A causal language model with a chat template that knows a system role.

    Args:
        checkpoint: A Hugging Face folder (`path`), or `repo` and `revision`.
        dtype: `float32`, `bfloat16` or `float16`; replies are independent of the batch in float32 only.
        attention: `sdpa`, `eager` or `flash_attention_2`.
        generation: The settings of `models.decoding.Generation`; nothing is taken from the checkpoint's own.
        device: torch's name.

    Raises:
        ValueError: wrong generation settings, or a tokenizer without a chat template.
    """

    version = "1"

    @classmethod
    def check(cls, arguments: Mapping[str, Any]) -> None:
        """Refuses settings before anything is loaded; raises ValueError."""
        loading.check(arguments)
        Generation.parse(arguments.get("generation", {}))

    def __init__(
        self,
        *,
        checkpoint: Mapping[str, Any],
        dtype: str,
        attention: str,
        generation: Mapping[str, Any],
        device: str = "cpu",
    ) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._generation = Generation.parse(generation)
        name, revision = source(checkpoint)
        self._tokenizer = AutoTokenizer.from_pretrained(name, revision=revision)
        if not self._tokenizer.chat_template:
            raise ValueError(
                f"{name}: its tokenizer has no chat template; take an instruction-tuned checkpoint"
            )
        model = AutoModelForCausalLM.from_pretrained(
            name, revision=revision, dtype=dtype, attn_implementation=attention
        )
        self._model = model.to(device).eval()
        self._stops = _stops(self._tokenizer, model)

    def complete(self, chats: Sequence[Chat]) -> list[Completion | Failure]:
        """Answers every chat in one batch; see `LanguageModel`."""
        prompts = [self._prompt(chat) for chat in chats]
        room = self._model.config.max_position_embeddings - self._generation.max_new_tokens
        fits = [index for index, prompt in enumerate(prompts) if len(prompt) <= room]
        results: list[Completion | Failure] = [
            Failure(kind="input_error", message=f"{len(prompt)} tokens; the context has room for {room}")
            for prompt in prompts
        ]
        if not fits:
            return results
        decoded = decode(
            self._model,
            [prompts[index] for index in fits],
            [chats[index].seed for index in fits],
            self._stops,
            self._generation,
        )
        for row, index in enumerate(fits):
            results[index] = Completion(
                text=self._tokenizer.decode(decoded.tokens[row], skip_special_tokens=True).strip(),
                tokens_in=len(prompts[index]),
                tokens_out=len(decoded.tokens[row]),
                truncated=decoded.truncated[row],
                first_token_s=decoded.first_token_s,
            )
        return results

    def _prompt(self, chat: Chat) -> list[int]:
        messages = [{"role": "system", "content": chat.system}, {"role": "user", "content": chat.user}]
        text = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, date_string=TEMPLATE_DATE
        )
        return list(self._tokenizer(text, add_special_tokens=False).input_ids)


def _stops(tokenizer: Any, model: Any) -> frozenset[int]:
    listed = model.generation_config.eos_token_id
    several = listed if isinstance(listed, list) else [listed]
    return frozenset(token for token in [*several, tokenizer.eos_token_id] if token is not None)
