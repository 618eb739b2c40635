"""What the tiny checkpoints share: a trained byte-level tokenizer, weights large enough to matter, a chat template.

Invariant: everything is drawn from fixed seeds; nothing is fetched.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

HEAD_DIM = 32
"""Of attention: vLLM on a CPU refuses 16."""

CORPUS = (
    "You are a helpful assistant.",
    "system user assistant",
    "Listen to the speaker and answer the question in one sentence.",
    "How does the speaker feel about the weather this morning?",
    "She laughed, coughed twice and asked for the time of the next train.",
    "Choose one of the options A, B, C or D.",
)


def chatml(audio: str) -> str:
    """A ChatML template; content is a string, or parts of which audio becomes the marker and text stays.

    Args:
        audio: What a part of audio becomes.
    """
    return (
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
        "{% if message['content'] is string %}{{ message['content'] }}"
        "{% else %}{% for part in message['content'] %}"
        "{% if part['type'] == 'audio' %}" + audio + "{% else %}{{ part['text'] }}{% endif %}"
        "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


def bpe(size: int) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """A byte-level BPE: all 256 bytes, and merges learnt from the corpus.

    Returns:
        Vocabulary and merges, as the slow tokenizers of transformers take them.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS * 5, trainer)
    made = json.loads(tokenizer.to_str())["model"]
    return made["vocab"], [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in made["merges"]]


def qwen_tokenizer(specials: Sequence[str], named: Mapping[str, str] | None = None) -> Any:
    """Qwen2's tokenizer class on a small vocabulary.

    Args:
        specials: Special tokens beside ChatML's three.
        named: Attribute -> token, for processors that read them from the tokenizer.
    """
    from tokenizers import AddedToken
    from transformers import Qwen2Tokenizer

    vocabulary, merges = bpe(512)
    end, pad = "<|im_end|>", "<|endoftext|>"
    extra = {"extra_special_tokens": dict(named)} if named else {}
    tokenizer = Qwen2Tokenizer(
        vocab=vocabulary, merges=merges, eos_token=end, pad_token=pad, unk_token=pad, **extra
    )
    tokens = [AddedToken(t, special=True, normalized=False) for t in (pad, "<|im_start|>", end, *specials)]
    tokenizer.add_tokens(tokens, special_tokens=True)
    return tokenizer


def padded_vocabulary(tokenizer: Any) -> int:
    """The vocabulary's size as models have it: rounded up."""
    return (len(tokenizer) + 63) // 64 * 64


def whisper_features(**changes: Any) -> Any:
    """The feature extractor that most audio models took over from Whisper large-v3."""
    from transformers import WhisperFeatureExtractor

    settings = dict(feature_size=128, sampling_rate=16000, hop_length=160, chunk_length=30, n_fft=400)
    return WhisperFeatureExtractor(**{**settings, **changes})


def qwen2_text(tokenizer: Any, **changes: Any) -> dict[str, Any]:
    """A Qwen2 language model's configuration: two layers, hidden size 64."""
    return {
        "model_type": "qwen2",
        "vocab_size": padded_vocabulary(tokenizer),
        "hidden_size": 2 * HEAD_DIM,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "bos_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        **changes,
    }


def redraw(model: Any, gain: float = 1.0, seed: int = 0) -> None:
    """Draws weights so large that a greedy reply depends on the audio (0.02, the usual, collapses to one token)."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() < 2:
                continue
            inputs = weight.shape[1] * (weight[0, 0].numel() if weight.dim() > 2 else 1)
            spread = 1.0 if "embed" in name and weight.dim() == 2 else 1.6 / math.sqrt(max(inputs, 1))
            weight.copy_(torch.randn(weight.shape, generator=generator) * spread * gain)


def ends_with(model: Any, tokenizer: Any) -> None:
    """Writes the tokenizer's end and padding tokens into the generation configuration."""
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """Within it torch draws from this seed; the state before is put back after it."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
