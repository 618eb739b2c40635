"""A Voxtral checkpoint in Mistral's own format, beside Hugging Face's in one folder, as the published ones have it.

`params.json` and `consolidated.safetensors`: vLLM reads these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

ENCODER = "mm_whisper_embeddings.whisper_encoder"
NAMES = (
    (r"language_model\.model\.embed_tokens\.", "mm_whisper_embeddings.tok_embeddings."),
    (r"language_model\.model\.norm\.", "norm."),
    (r"language_model\.lm_head\.", "output."),
    (r"language_model\.model\.layers\.(\d+)\.self_attn\.([qkvo])_proj\.", r"layers.\1.attention.w\2."),
    (r"language_model\.model\.layers\.(\d+)\.mlp\.gate_proj\.", r"layers.\1.feed_forward.w1."),
    (r"language_model\.model\.layers\.(\d+)\.mlp\.down_proj\.", r"layers.\1.feed_forward.w2."),
    (r"language_model\.model\.layers\.(\d+)\.mlp\.up_proj\.", r"layers.\1.feed_forward.w3."),
    (r"language_model\.model\.layers\.(\d+)\.input_layernorm\.", r"layers.\1.attention_norm."),
    (r"language_model\.model\.layers\.(\d+)\.post_attention_layernorm\.", r"layers.\1.ffn_norm."),
    (r"audio_tower\.conv1\.", f"{ENCODER}.conv_layers.0."),
    (r"audio_tower\.conv2\.", f"{ENCODER}.conv_layers.1."),
    (r"audio_tower\.embed_positions\.", f"{ENCODER}.embed_positions."),
    (r"audio_tower\.layer_norm\.", f"{ENCODER}.transformer.norm."),
    (
        r"audio_tower\.layers\.(\d+)\.self_attn\.([qkv])_proj\.",
        rf"{ENCODER}.transformer.layers.\1.attention.w\2.",
    ),
    (r"audio_tower\.layers\.(\d+)\.self_attn\.out_proj\.", rf"{ENCODER}.transformer.layers.\1.attention.wo."),
    (
        r"audio_tower\.layers\.(\d+)\.self_attn_layer_norm\.",
        rf"{ENCODER}.transformer.layers.\1.attention_norm.",
    ),
    (r"audio_tower\.layers\.(\d+)\.fc([12])\.", rf"{ENCODER}.transformer.layers.\1.feed_forward.w\2."),
    (r"audio_tower\.layers\.(\d+)\.final_layer_norm\.", rf"{ENCODER}.transformer.layers.\1.ffn_norm."),
    (r"multi_modal_projector\.linear_1\.", "mm_whisper_embeddings.audio_language_projection.0."),
    (r"multi_modal_projector\.linear_2\.", "mm_whisper_embeddings.audio_language_projection.2."),
)
"""Hugging Face's names -> Mistral's."""


def write(folder: Path) -> None:
    """Writes both files from the folder's `config.json` and `model.safetensors`."""
    from safetensors.torch import load_file, save_file

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    text = config["text_config"]
    heads = {"q": text["num_attention_heads"], "k": text["num_key_value_heads"]}
    weights = load_file(folder / "model.safetensors")
    renamed = {_mistral(name): _interleaved(name, weight, heads) for name, weight in weights.items()}
    save_file(renamed, folder / "consolidated.safetensors")
    params = json.dumps(_params(text, config["audio_config"]), indent=1)
    (folder / "params.json").write_text(params + "\n", encoding="utf-8")


def _mistral(name: str) -> str:
    found = [re.sub(pattern, new, name) for pattern, new in NAMES if re.match(pattern, name)]
    assert len(found) == 1, f"{name} has {len(found)} names in Mistral's format"
    return found[0]


def _interleaved(name: str, weight: Tensor, heads: Mapping[str, int]) -> Tensor:
    """Rotary pairs side by side, where Hugging Face has a head's first halves before its second halves."""
    kind = re.fullmatch(r"language_model\.model\.layers\.\d+\.self_attn\.([qk])_proj\.weight", name)
    if kind is None:
        return weight
    rows, columns = weight.shape
    halves = weight.view(heads[kind[1]], 2, -1, columns)
    return halves.transpose(1, 2).reshape(rows, columns).contiguous()


def _params(text: Mapping[str, Any], audio: Mapping[str, Any]) -> dict[str, Any]:
    encoding = {"sampling_rate": 16000, "num_mel_bins": audio["num_mel_bins"], "hop_length": 160}
    encoder = {
        **_shape(audio),
        "max_source_positions": audio["max_source_positions"],
        "audio_encoding_args": {**encoding, "window_size": 400},
    }
    frames_a_token = audio["intermediate_size"] // audio["hidden_size"]
    return {
        **_shape(text),
        "n_kv_heads": text["num_key_value_heads"],
        "norm_eps": text["rms_norm_eps"],
        "rope_theta": text["rope_parameters"]["rope_theta"],
        "max_position_embeddings": text["max_position_embeddings"],
        "multimodal": {
            "whisper_model_args": {
                "encoder_args": encoder,
                "downsample_args": {"downsample_factor": frames_a_token},
            }
        },
    }


def _shape(part: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "dim": part["hidden_size"],
        "n_layers": part["num_hidden_layers"],
        "head_dim": part["hidden_size"] // part["num_attention_heads"],
        "hidden_dim": part["intermediate_size"],
        "n_heads": part["num_attention_heads"],
        "vocab_size": part["vocab_size"],
    }
