"""Audio Flamingo 3, shrunk: `AudioFlamingo3ForConditionalGeneration` with its processor (30 s windows)."""

from __future__ import annotations

from pathlib import Path

from models.saving import save
from models.tiny.common import (
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
    from transformers import (
        AudioFlamingo3Config,
        AudioFlamingo3ForConditionalGeneration,
        AudioFlamingo3Processor,
    )

    tokenizer = qwen_tokenizer(["<sound>"])
    processor = AudioFlamingo3Processor(
        feature_extractor=whisper_features(return_attention_mask=True),
        tokenizer=tokenizer,
        chat_template=chatml("<sound>"),
    )
    config = AudioFlamingo3Config(
        audio_config=dict(
            model_type="audioflamingo3_encoder",
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=128,
            num_mel_bins=128,
            max_source_positions=1500,
        ),
        # 600 s of audio, the longest it takes, are 15,000 tokens.
        text_config=qwen2_text(tokenizer, max_position_embeddings=32768),
        audio_token_id=tokenizer.convert_tokens_to_ids("<sound>"),
        tie_word_embeddings=False,
    )
    with drawn_from(0):
        model = AudioFlamingo3ForConditionalGeneration(config)
    redraw(model)
    ends_with(model, tokenizer)
    save(model, folder)
    processor.save_pretrained(folder)
