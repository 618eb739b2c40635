"""Qwen2.5-Omni, shrunk: thinker, talker and token2wav (`Qwen2_5OmniForConditionalGeneration`) with its processor.

Its voices lie in `spk_dict.pt`, which loading needs and saving does not write.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

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

HIDDEN = 2 * HEAD_DIM
CODES = 64
"""Of the codec; the talker's vocabulary has 16 more: padding, start, end, mask and 12 unused."""
NAMED = {
    "image_token": "<|IMAGE|>",
    "audio_token": "<|AUDIO|>",
    "video_token": "<|VIDEO|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
}
SPOKEN = ["<|tts_bos|>", "<|tts_eos|>", "<|tts_pad|>"]
ROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]}
"""The sections add up to half of the head size."""


def build(folder: Path) -> None:
    """Writes the checkpoint."""
    from transformers import Qwen2_5OmniConfig, Qwen2_5OmniForConditionalGeneration

    tokenizer = qwen_tokenizer([*NAMED.values(), *SPOKEN], named=NAMED)
    config = Qwen2_5OmniConfig(
        thinker_config=_thinker(tokenizer),
        talker_config=_talker(tokenizer),
        token2wav_config=_token2wav(),
        enable_audio_output=True,
    )
    with drawn_from(0):
        model = Qwen2_5OmniForConditionalGeneration(config)
    redraw(model.thinker)
    redraw(model.talker, seed=1)
    # 1.0 would clip.
    redraw(model.token2wav.code2wav_bigvgan_model, gain=0.5, seed=2)
    ends_with(model, tokenizer)
    ends_with(model.thinker, tokenizer)
    model.save_pretrained(folder)
    _processor(tokenizer).save_pretrained(folder)
    _save_voices(folder, tokenizer)


def _processor(tokenizer: Any) -> Any:
    from transformers import Qwen2_5OmniProcessor, Qwen2VLImageProcessor, Qwen2VLVideoProcessor

    return Qwen2_5OmniProcessor(
        image_processor=Qwen2VLImageProcessor(),
        video_processor=Qwen2VLVideoProcessor(),
        # 300 s, as the real one has it: its default padding is what makes it slow.
        feature_extractor=whisper_features(chunk_length=300, return_attention_mask=True),
        tokenizer=tokenizer,
        chat_template=chatml("<|audio_bos|><|AUDIO|><|audio_eos|>"),
    )


def _marks(tokenizer: Any) -> dict[str, Any]:
    ids = tokenizer.convert_tokens_to_ids
    return {
        "audio_token_index": ids("<|AUDIO|>"),
        "image_token_index": ids("<|IMAGE|>"),
        "video_token_index": ids("<|VIDEO|>"),
        "audio_start_token_id": ids("<|audio_bos|>"),
        "audio_end_token_id": ids("<|audio_eos|>"),
        "vision_start_token_id": ids("<|vision_bos|>"),
        "vision_end_token_id": ids("<|vision_eos|>"),
    }


def _thinker(tokenizer: Any) -> dict[str, Any]:
    text = qwen2_text(tokenizer, max_position_embeddings=8192, rope_parameters=ROPE)
    del text["model_type"]
    return {
        "audio_config": dict(
            d_model=64,
            encoder_layers=2,
            encoder_attention_heads=2,
            encoder_ffn_dim=128,
            num_mel_bins=128,
            max_source_positions=1500,
            n_window=100,
            output_dim=HIDDEN,
        ),
        "vision_config": dict(
            depth=2,
            hidden_size=32,
            intermediate_size=64,
            num_heads=2,
            out_hidden_size=HIDDEN,
            fullatt_block_indexes=[1],
        ),
        "text_config": text,
        "user_token_id": tokenizer.convert_tokens_to_ids("user"),
        "pad_token_id": tokenizer.pad_token_id,
        **_marks(tokenizer),
    }


def _talker(tokenizer: Any) -> dict[str, Any]:
    ids = tokenizer.convert_tokens_to_ids
    return {
        "vocab_size": CODES + 16,
        "tts_text_start_token_id": ids("<|tts_bos|>"),
        "tts_text_end_token_id": ids("<|tts_eos|>"),
        "tts_text_pad_token_id": ids("<|tts_pad|>"),
        "tts_codec_pad_token_id": CODES,
        "tts_codec_start_token_id": CODES + 1,
        "tts_codec_end_token_id": CODES + 2,
        "tts_codec_mask_token_id": CODES + 3,
        "embedding_size": HIDDEN,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": HEAD_DIM,
        "max_position_embeddings": 8192,
        "rope_parameters": ROPE,
        "pad_token_id": CODES,
        **_marks(tokenizer),
    }


def _token2wav() -> dict[str, Any]:
    return {
        "dit_config": dict(
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            head_dim=16,
            emb_dim=32,
            block_size=24,
            look_ahead_layers=[1],
            look_backward_layers=[0],
            repeats=2,
            # A random talker emits every id of its vocabulary; the real one only codes.
            num_embeds=CODES + 17,
            mel_dim=80,
            enc_emb_dim=32,
            enc_dim=16,
            enc_channels=[16, 16, 16, 16, 48],
            enc_attention_channels=8,
            enc_res2net_scale=2,
            enc_se_channels=8,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        ),
        "bigvgan_config": dict(
            mel_dim=80,
            upsample_initial_channel=64,
            upsample_rates=[5, 3, 2, 2, 2, 2],
            upsample_kernel_sizes=[11, 7, 4, 4, 4, 4],
        ),
    }


def _save_voices(folder: Path, tokenizer: Any) -> None:
    import torch

    generator = torch.Generator().manual_seed(5)
    voices = {
        name: {
            "bos_token": tokenizer.convert_tokens_to_ids("<|tts_bos|>"),
            "cond": torch.randn(1, 32, generator=generator),
            "ref_mel": torch.randn(1, 120, 80, generator=generator),
        }
        for name in ("Chelsie", "Ethan")
    }
    torch.save(voices, folder / "spk_dict.pt")
