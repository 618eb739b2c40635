"""Checkpoints of real architectures, shrunk to megabytes, random weights: `python scripts/tiny_checkpoint.py all OUT`.

They load through the same classes, processors and code as the real ones, so that an adapter can be proven without a
GPU. What they say means nothing.

Invariant: a checkpoint's folder appears complete or not at all; one of this recipe is not built again.
"""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
from pathlib import Path

RECIPE = "4"
"""Raised with every change to a builder: older folders are then built anew."""

ARCHITECTURES = (
    "qwen2_audio",
    "audio_flamingo3",
    "qwen2_5_omni",
    "qwen3_omni",
    "voxtral",
    "moshi",
    "glm_asr",
)
"""Each is a module of this package with `build(folder)`."""


def make(architecture: str, folder: Path) -> bool:
    """Builds a checkpoint unless the folder has it.

    Args:
        architecture: One of `ARCHITECTURES`.
        folder: Where `from_pretrained` shall find it.

    Returns:
        Whether it was built.

    Raises:
        ValueError: no such architecture, or the folder holds something that was not built here.
    """
    if architecture not in ARCHITECTURES:
        raise ValueError(f"no tiny checkpoint of {architecture!r}; there are {', '.join(ARCHITECTURES)}, all")
    folder = Path(os.path.abspath(folder))
    note = folder.with_name(f"{folder.name}.recipe.txt")
    if folder.is_dir() and note.is_file() and note.read_text().strip() == RECIPE:
        return False
    if folder.exists() and not note.is_file() and _filled(folder):
        raise ValueError(f"{folder} is there and no tiny checkpoint: it would be lost; name a new folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        made = Path(scratch) / "made"
        importlib.import_module(f"models.tiny.{architecture}").build(made)
        note.write_text("unfinished\n")
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    note.write_text(f"{RECIPE}\n")
    return True


def _filled(folder: Path) -> bool:
    return not folder.is_dir() or any(folder.iterdir())
