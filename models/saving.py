"""Saves a model of transformers under the weight names that checkpoints of its architecture are published with.

transformers 5.19 undoes its own renaming twice for models that wrap a language model (Qwen2-Audio, Audio Flamingo 3,
Voxtral, GLM-ASR): it writes `language_model.model.model.layers...`, which it reads again itself and nobody else does.

Invariant: names apart, the files are what `save_pretrained` wrote.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOUBLED, PUBLISHED = "language_model.model.model.", "language_model.model."


def save(model: Any, folder: Path) -> None:
    """`save_pretrained`, with published names."""
    model.save_pretrained(folder)
    for file in sorted(folder.glob("*.safetensors")):
        _rename(file)
    for index in folder.glob("*.safetensors.index.json"):
        whole = json.loads(index.read_text(encoding="utf-8"))
        whole["weight_map"] = {_published(name): file for name, file in whole["weight_map"].items()}
        index.write_text(json.dumps(whole, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _rename(file: Path) -> None:
    """Rewrites the header in its place: eight bytes of its length, then JSON, which may end in spaces."""
    with file.open("r+b") as weights:
        size = int.from_bytes(weights.read(8), "little")
        header = json.loads(weights.read(size))
        renamed = json.dumps(
            {_published(name): entry for name, entry in header.items()}, separators=(",", ":")
        )
        weights.seek(8)
        weights.write(renamed.encode().ljust(size))


def _published(name: str) -> str:
    return name.replace(DOUBLED, PUBLISHED)
