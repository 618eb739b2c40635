"""Qwen3-Omni, shrunk: thinker, talker and code2wav (`Qwen3OmniMoeForConditionalGeneration`) with its processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.tiny.common import (
    HEAD_DIM,
    chatml,
    drawn_from,
    ends_with,
    padded_vocabulary,
    qwen_tokenizer,
    redraw,
    whisper_features,
)

HIDDEN = 2 * HEAD_DIM
CODEBOOK = 64
GROUPS = 4
"""Codes a frame; the real one has 16."""
CODES = 1024 + CODEBOOK
"""The talker's vocabulary: codes, then 1,024 ids that are none."""
NAMED = {
    "image_token": "<|image_pad|>",
    "audio_token": "<|audio_pad|>",
    "video_token": "<|video_pad|>",
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
    "audio_bos_token": "<|audio_start|>",
    "audio_eos_token": "<|audio_end|>",
}
SPOKEN = ["<tts_pad>", "<tts_text_bos>", "<tts_text_eod>"]
ROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6], "mrope_interleaved": True}
EXPERTS = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "decoder_sparse_step": 1,
}
LAYERS = {
    "hidden_size": HIDDEN,
    "intermediate_size": 128,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": HEAD_DIM,
    "max_position_embeddings": 8192,
}


def build(folder: Path) -> None:
    """Writes the checkpoint."""
    from transformers import Qwen3OmniMoeConfig, Qwen3OmniMoeForConditionalGeneration

    tokenizer = qwen_tokenizer([*NAMED.values(), *SPOKEN, "user", "assistant", "system"], named=NAMED)
    ids = tokenizer.convert_tokens_to_ids
    config = Qwen3OmniMoeConfig(
        thinker_config=_thinker(tokenizer),
        talker_config=_talker(tokenizer),
        code2wav_config=_code2wav(),
        enable_audio_output=True,
        im_start_token_id=ids("<|im_start|>"),
        im_end_token_id=ids("<|im_end|>"),
        tts_pad_token_id=ids("<tts_pad>"),
        tts_bos_token_id=ids("<tts_text_bos>"),
        tts_eos_token_id=ids("<tts_text_eod>"),
        system_token_id=ids("system"),
        user_token_id=ids("user"),
        assistant_token_id=ids("assistant"),
    )
    with drawn_from(0):
        model = Qwen3OmniMoeForConditionalGeneration(config)
    redraw(model.thinker)
    redraw(model.talker, seed=1)
    redraw(model.code2wav, gain=0.5, seed=2)
    ends_with(model, tokenizer)
    ends_with(model.thinker, tokenizer)
    model.save_pretrained(folder)
    _processor(tokenizer).save_pretrained(folder)


def _processor(tokenizer: Any) -> Any:
    from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor, Qwen3OmniMoeProcessor

    return Qwen3OmniMoeProcessor(
        image_processor=Qwen2VLImageProcessor(),
        video_processor=Qwen2VLVideoProcessor(),
        feature_extractor=whisper_features(chunk_length=300, return_attention_mask=True),
        tokenizer=tokenizer,
        chat_template=chatml("<|audio_start|><|audio_pad|><|audio_end|>"),
    )


def _marks(tokenizer: Any) -> dict[str, Any]:
    ids = tokenizer.convert_tokens_to_ids
    return {
        "audio_token_id": ids("<|audio_pad|>"),
        "image_token_id": ids("<|image_pad|>"),
        "video_token_id": ids("<|video_pad|>"),
        "audio_start_token_id": ids("<|audio_start|>"),
        "vision_start_token_id": ids("<|vision_start|>"),
    }


def _thinker(tokenizer: Any) -> dict[str, Any]:
    return {
        "audio_config": dict(
            d_model=64,
            encoder_layers=2,
            encoder_attention_heads=2,
            encoder_ffn_dim=128,
            num_mel_bins=128,
            max_source_positions=1500,
            output_dim=HIDDEN,
            downsample_hidden_size=16,
        ),
        "vision_config": dict(
            depth=2,
            hidden_size=32,
            intermediate_size=64,
            num_heads=2,
            out_hidden_size=HIDDEN,
            num_position_embeddings=16,
            deepstack_visual_indexes=[0, 1],
        ),
        "text_config": dict(
            vocab_size=padded_vocabulary(tokenizer),
            num_hidden_layers=3,
            rope_parameters=ROPE,
            bos_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            **LAYERS,
            **EXPERTS,
        ),
        "user_token_id": tokenizer.convert_tokens_to_ids("user"),
        **_marks(tokenizer),
    }


def _talker(tokenizer: Any) -> dict[str, Any]:
    first_special = CODEBOOK
    return {
        "text_config": dict(
            vocab_size=CODES,
            num_hidden_layers=2,
            rope_parameters=ROPE,
            shared_expert_intermediate_size=32,
            **LAYERS,
            **EXPERTS,
        ),
        "code_predictor_config": dict(
            vocab_size=CODEBOOK, num_hidden_layers=1, num_code_groups=GROUPS, **LAYERS
        ),
        "num_code_groups": GROUPS,
        # The class reads it, and the configuration has no default of it.
        "spatial_merge_size": 2,
        "thinker_hidden_size": HIDDEN,
        "accept_hidden_layer": 2,
        "codec_pad_id": first_special,
        "codec_bos_id": first_special + 1,
        "codec_eos_token_id": first_special + 2,
        "codec_nothink_id": first_special + 3,
        "codec_think_bos_id": first_special + 4,
        "codec_think_eos_id": first_special + 5,
        "speaker_id": {"ethan": first_special + 6, "chelsie": first_special + 7},
        **_marks(tokenizer),
    }


def _code2wav() -> dict[str, Any]:
    return dict(
        codebook_size=CODEBOOK,
        num_quantizers=GROUPS,
        hidden_size=64,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=128,
        num_hidden_layers=1,
        decoder_dim=64,
        sliding_window=16,
    )
