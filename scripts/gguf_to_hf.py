"""Turns SmolLM2's GGUF file into a Hugging Face folder in bfloat16: `python scripts/gguf_to_hf.py MODEL.gguf FOLDER`.

Invariant: the folder's bytes depend on the GGUF file alone, because the SHA-256 of all of them is the checkpoint's
fingerprint: what transformers writes of itself (its version, how the tokenizer was found) is left out.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

OF_THIS_MACHINE = (
    "transformers_version",
    "_name_or_path",
    "_model_name_or_path",
    "_from_model_config",
    "is_local",
    "local_files_only",
)


def main(model_file: Path, folder: Path) -> None:
    """Converts weights and tokenizer; the folder may exist."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = {"pretrained_model_name_or_path": model_file.parent, "gguf_file": model_file.name}
    model: Any = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    # transformers refuses to save a model that it calls quantized; these weights no longer are.
    del model.config.quantization_config
    model.hf_quantizer, model.is_quantized = None, False
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(**where)
    _split_digits(tokenizer)
    tokenizer.model_max_length = model.config.max_position_embeddings
    tokenizer.save_pretrained(folder)
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        _neutral(folder / name)


def _split_digits(tokenizer: Any) -> None:
    """SmolLM2 takes every digit on its own (`tokenizer.ggml.pre = smollm` in the GGUF); transformers ignores it."""
    from tokenizers import pre_tokenizers

    backend = tokenizer.backend_tokenizer
    digits = pre_tokenizers.Digits(individual_digits=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([digits, backend.pre_tokenizer])


def _neutral(path: Path) -> None:
    values = json.loads(path.read_text(encoding="utf-8"))
    kept = {key: value for key, value in values.items() if key not in OF_THIS_MACHINE}
    path.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
