"""Checkpoints for tests: the demo's, where they have been fetched, and tiny ones with random weights made here."""

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:'\n"
TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}<s>system\nAn injected default</s>{% endif %}"
    "{% for m in messages %}<s>{{ m['role'] }}\n{{ m['content'] }}</s>{% endfor %}<s>assistant\n"
)
"""Puts a system prompt of its own where none is given, as SmolLM2's and Qwen2.5's do."""


def demo_weights(name: str) -> dict[str, str]:
    """A fetched component's `checkpoint`; the test is skipped where it is not there."""
    path = ROOT / "weights" / name
    if not path.is_dir():
        pytest.skip(f"no {path.relative_to(ROOT)}: python scripts/fetch_demo_weights.py --only {name}")
    return {"path": str(path)}


def spread(model: Any, seed: int = 0) -> Any:
    """Random weights large enough that what is generated depends on what was given."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                fan_in = parameter[0].numel()
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 1.6 / fan_in**0.5)
    return model.eval()


def tiny_llama(folder: Path, context: int = 256) -> dict[str, str]:
    """A Llama of two layers whose tokens are letters, with a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = {token: index for index, token in enumerate(["<unk>", "<s>", "</s>", *LETTERS])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    backend.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>", chat_template=TEMPLATE
    )
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        bos_token_id=1,
        eos_token_id=2,
    )
    spread(LlamaForCausalLM(config)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {"path": str(folder)}


def tiny_whisper(folder: Path) -> dict[str, str]:
    """A Whisper of one layer a side, English only, whose tokens are letters; it hears full windows of 30 s."""
    from transformers import (
        GenerationConfig,
        WhisperConfig,
        WhisperFeatureExtractor,
        WhisperForConditionalGeneration,
        WhisperProcessor,
        WhisperTokenizer,
    )

    special = [
        "<|endoftext|>",
        "<|startoftranscript|>",
        "<|startofprev|>",
        "<|nospeech|>",
        "<|notimestamps|>",
    ]
    timestamps = [f"<|{step * 0.02:.2f}|>" for step in range(1501)]
    letters = [letter for letter in LETTERS.replace(" ", "Ġ") if letter != "\n"]
    tokenizer = WhisperTokenizer(vocab={letter: i for i, letter in enumerate(letters)}, merges=[])
    tokenizer.add_tokens(special, special_tokens=True)
    tokenizer.add_tokens(timestamps)
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in special}
    config = WhisperConfig(
        vocab_size=len(tokenizer),
        num_mel_bins=80,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        decoder_start_token_id=ids["<|startoftranscript|>"],
        bos_token_id=ids["<|endoftext|>"],
        eos_token_id=ids["<|endoftext|>"],
        pad_token_id=ids["<|endoftext|>"],
    )
    model = spread(WhisperForConditionalGeneration(config))
    # Attention that picks frames, not their mean over 30 s: else every clip would be heard as the same.
    model.model.decoder.layers[0].encoder_attn.q_proj.weight.data *= 20
    model.generation_config = GenerationConfig(
        decoder_start_token_id=ids["<|startoftranscript|>"],
        bos_token_id=ids["<|endoftext|>"],
        eos_token_id=ids["<|endoftext|>"],
        pad_token_id=ids["<|endoftext|>"],
        no_timestamps_token_id=ids["<|notimestamps|>"],
        prev_sot_token_id=ids["<|startofprev|>"],
        is_multilingual=False,
        max_length=24,
        return_timestamps=False,
    )
    model.save_pretrained(folder)
    WhisperProcessor(WhisperFeatureExtractor(feature_size=80), tokenizer).save_pretrained(folder)
    return {"path": str(folder)}
