"""Voxtral, shrunk: `VoxtralForConditionalGeneration` with a tekken tokenizer of 256 bytes and 40 special tokens.

In Hugging Face's format and in Mistral's, as the published checkpoints are.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from models.saving import save
from models.tiny import mistral_format
from models.tiny.common import HEAD_DIM, drawn_from, redraw, whisper_features

SPECIALS = {
    0: "<unk>",
    1: "<s>",
    2: "</s>",
    3: "[INST]",
    4: "[/INST]",
    5: "[AVAILABLE_TOOLS]",
    6: "[/AVAILABLE_TOOLS]",
    7: "[TOOL_RESULTS]",
    8: "[/TOOL_RESULTS]",
    9: "[TOOL_CALLS]",
    10: "[IMG]",
    11: "<pad>",
    12: "[IMG_BREAK]",
    13: "[IMG_END]",
    14: "[PREFIX]",
    15: "[MIDDLE]",
    16: "[SUFFIX]",
    17: "[SYSTEM_PROMPT]",
    18: "[/SYSTEM_PROMPT]",
    19: "[TOOL_CONTENT]",
    24: "[AUDIO]",
    25: "[BEGIN_AUDIO]",
    34: "[TRANSCRIBE]",
}
"""At the ids that the real tokenizer has; `VoxtralProcessor` takes 24 for granted."""
SPECIAL_COUNT = 40
VOCABULARY = 256 + SPECIAL_COUNT
"""The model's must be exactly this: decoding raises a KeyError for anything above."""
PATTERN = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def build(folder: Path) -> None:
    """Writes the checkpoint."""
    from transformers import VoxtralConfig, VoxtralForConditionalGeneration, VoxtralProcessor
    from transformers.tokenization_mistral_common import MistralCommonBackend

    folder.mkdir(parents=True)
    (folder / "tekken.json").write_text(json.dumps(_tekken()))
    tokenizer = MistralCommonBackend.from_pretrained(str(folder))
    processor = VoxtralProcessor(feature_extractor=whisper_features(), tokenizer=tokenizer)
    with drawn_from(0):
        model = VoxtralForConditionalGeneration(
            VoxtralConfig(audio_config=_encoder(), text_config=_language_model(), audio_token_id=24)
        )
    redraw(model)
    model.generation_config.update(bos_token_id=1, eos_token_id=2, pad_token_id=11)
    save(model, folder)
    processor.save_pretrained(folder)
    mistral_format.write(folder)


def _tekken() -> dict[str, Any]:
    """The tokenizer's file: every byte a token, no merges."""
    specials = [SPECIALS.get(rank, f"<SPECIAL_{rank}>") for rank in range(SPECIAL_COUNT)]
    return {
        "config": {
            "pattern": PATTERN,
            "num_vocab_tokens": 256,
            "default_vocab_size": VOCABULARY,
            "default_num_special_tokens": SPECIAL_COUNT,
            "version": "v7",
        },
        "vocab": [
            {
                "rank": byte,
                "token_bytes": base64.b64encode(bytes([byte])).decode(),
                "token_str": chr(byte) if byte < 128 else None,
            }
            for byte in range(256)
        ],
        "special_tokens": [
            {"rank": rank, "token_str": token, "is_control": True} for rank, token in enumerate(specials)
        ],
        "audio": {
            "sampling_rate": 16000,
            "frame_rate": 12.5,
            "audio_encoding_config": {"num_mel_bins": 128, "hop_length": 160, "window_size": 400},
            "chunk_length_s": 30.0,
        },
    }


def _encoder() -> dict[str, Any]:
    return {
        "model_type": "voxtral_encoder",
        "hidden_size": 64,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_mel_bins": 128,
        "max_source_positions": 1500,
        "vocab_size": VOCABULARY,
    }


def _language_model() -> dict[str, Any]:
    return {
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": 2 * HEAD_DIM,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": HEAD_DIM,
        "max_position_embeddings": 8192,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 11,
    }
