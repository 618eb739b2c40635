"""GLM-ASR, shrunk: `GlmAsrForConditionalGeneration` with its processor, and a Llama as language model."""

from __future__ import annotations

from pathlib import Path

from models.saving import save
from models.tiny.common import (
    HEAD_DIM,
    chatml,
    drawn_from,
    ends_with,
    qwen2_text,
    qwen_tokenizer,
    redraw,
    whisper_features,
)


def build(folder: Path) -> None:
    """Writes the checkpoint."""
    from transformers import GlmAsrConfig, GlmAsrForConditionalGeneration, GlmAsrProcessor

    tokenizer = qwen_tokenizer(["<|pad|>", "<|begin_of_audio|>", "<|end_of_audio|>"])
    processor = GlmAsrProcessor(
        feature_extractor=whisper_features(return_attention_mask=True),
        tokenizer=tokenizer,
        chat_template=chatml("<|begin_of_audio|><|pad|><|end_of_audio|>"),
    )
    config = GlmAsrConfig(
        audio_config=dict(
            model_type="glmasr_encoder",
            hidden_size=2 * HEAD_DIM,
            intermediate_size=4 * 2 * HEAD_DIM,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_mel_bins=128,
        ),
        text_config=qwen2_text(tokenizer, model_type="llama"),
        audio_token_id=tokenizer.convert_tokens_to_ids("<|pad|>"),
        tie_word_embeddings=False,
    )
    with drawn_from(0):
        model = GlmAsrForConditionalGeneration(config)
    redraw(model)
    ends_with(model, tokenizer)
    save(model, folder)
    processor.save_pretrained(folder)
