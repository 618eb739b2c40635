"""Moshi, shrunk: `MoshiForConditionalGeneration` with its Mimi codec (8 codebooks, 12.5 Hz) and depth decoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.tiny.common import bpe, drawn_from, redraw

CODEBOOKS, CODES, PAD = 8, 32, 3


def build(folder: Path) -> None:
    """Writes the checkpoint."""
    from transformers import EncodecFeatureExtractor, MoshiForConditionalGeneration

    tokenizer = _tokenizer()
    with drawn_from(0):
        model = MoshiForConditionalGeneration(_config(len(tokenizer)))
    redraw(model.decoder)
    redraw(model.embed_tokens, seed=4)
    redraw(model.depth_decoder, seed=1)
    redraw(model.audio_encoder, gain=0.6, seed=2)
    _fill_codebooks(model.audio_encoder)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    EncodecFeatureExtractor(feature_size=1, sampling_rate=24000).save_pretrained(folder)


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary, merges = bpe(380)
    specials = {"<unk>": 0, "<s>": 1, "</s>": 2, "<pad>": PAD}
    shifted = {token: index + len(specials) for token, index in vocabulary.items()}
    tokenizer = Tokenizer(models.BPE(vocab={**shifted, **specials}, merges=merges, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
    )


def _config(vocabulary: int) -> Any:
    from transformers import MimiConfig, MoshiConfig

    mimi = MimiConfig(
        sampling_rate=24000,
        frame_rate=12.5,
        num_filters=8,
        hidden_size=32,
        codebook_size=CODES,
        codebook_dim=16,
        vector_quantization_hidden_dimension=16,
        num_quantizers=CODEBOOKS,
        num_semantic_quantizers=1,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=64,
        upsampling_ratios=[8, 6, 5, 4],
        compress=2,
        upsample_groups=32,
        sliding_window=250,
    )
    depth = dict(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        ffn_dim=64,
        max_position_embeddings=CODEBOOKS + 1,
        sliding_window=8,
    )
    return MoshiConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=16,
        ffn_dim=128,
        audio_vocab_size=CODES,
        num_codebooks=CODEBOOKS,
        max_position_embeddings=1000,
        sliding_window=1000,
        audio_encoder_config={**mimi.to_dict(), "model_type": "mimi"},
        depth_decoder_config=depth,
        bos_token_id=1,
        pad_token_id=PAD,
    )


def _fill_codebooks(codec: Any) -> None:
    """Mimi's codebooks are buffers of zeros at first: every frame would become code 0."""
    import torch

    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, buffer in codec.named_buffers():
            if name.endswith("embed_sum"):
                buffer.copy_(torch.randn(buffer.shape, generator=generator) * 0.5)
