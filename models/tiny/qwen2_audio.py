"""Qwen2-Audio, shrunk: `Qwen2AudioForConditionalGeneration` with its processor."""

from __future__ import annotations

from pathlib import Path

from models.saving import save
from models.tiny.common import (
    chatml,
    drawn_from,
    ends_with,
    padded_vocabulary,
    qwen2_text,
    qwen_tokenizer,
    redraw,
    whisper_features,
)


def build(folder: Path) -> None:
    """Writes the checkpoint."""
    from transformers import Qwen2AudioConfig, Qwen2AudioForConditionalGeneration, Qwen2AudioProcessor

    tokenizer = qwen_tokenizer(["<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>"])
    template = chatml("<|audio_bos|><|AUDIO|><|audio_eos|>\n")
    processor = Qwen2AudioProcessor(
        feature_extractor=whisper_features(), tokenizer=tokenizer, chat_template=template
    )
    config = Qwen2AudioConfig(
        audio_config=dict(
            model_type="qwen2_audio_encoder",
            d_model=64,
            encoder_layers=2,
            encoder_attention_heads=2,
            encoder_ffn_dim=128,
            num_mel_bins=128,
            max_source_positions=1500,
        ),
        text_config=qwen2_text(tokenizer),
        audio_token_index=tokenizer.convert_tokens_to_ids("<|AUDIO|>"),
        vocab_size=padded_vocabulary(tokenizer),
        tie_word_embeddings=False,
    )
    with drawn_from(0):
        model = Qwen2AudioForConditionalGeneration(config)
    redraw(model)
    ends_with(model, tokenizer)
    save(model, folder)
    processor.save_pretrained(folder)
