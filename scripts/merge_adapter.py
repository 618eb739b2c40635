"""Merges a published LoRA adapter into its base model once: `python scripts/merge_adapter.py NAME REVISION`.

The result is a checkpoint as any other: it loads in a second less code, batches, and goes into vLLM too.

    python scripts/merge_adapter.py audio_flamingo3_think 5a1b...   # REVISION: a commit of the hub repository
    python scripts/merge_adapter.py phi4_multimodal 0c2d... --source /data/Phi-4-multimodal-instruct

Invariant: the folder has its final name only when it is whole; in it merged_from.json says what it was made of. Exit
status: 0 merged, 1 it could not be fetched or does not fit, 2 no such name.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.saving import save

WEIGHTS = Path(__file__).resolve().parents[1] / "weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Where base model and adapter lie in one repository."""

    repo: str
    model_class: str
    """Of transformers."""
    adapter: str
    """Folder of the adapter inside the repository."""
    trained_beside: str | None = None
    """A file of weights that were trained with the adapter and replace the base model's own."""


MERGES: Mapping[str, Merge] = {
    "audio_flamingo3_think": Merge(
        repo="nvidia/audio-flamingo-3-hf",
        model_class="AudioFlamingo3ForConditionalGeneration",
        adapter="think",
        trained_beside="think/non_lora_trainables.bin",
    ),
    "phi4_multimodal": Merge(
        repo="microsoft/Phi-4-multimodal-instruct",
        model_class="Phi4MultimodalForCausalLM",
        adapter="speech-lora",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Merges one; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=MERGES, metavar="NAME", help=", ".join(MERGES))
    parser.add_argument("revision", metavar="REVISION", help="commit of the hub repository")
    parser.add_argument("--source", type=Path, help="a download of that revision; else it is fetched")
    parser.add_argument("--to", type=Path, help="result (weights/NAME)")
    parser.add_argument("--dtype", default="bfloat16", help="precision of the result (bfloat16)")
    chosen = parser.parse_args(arguments)
    recipe, target = MERGES[chosen.name], chosen.to or WEIGHTS / chosen.name
    try:
        source = chosen.source or _fetched(recipe.repo, chosen.revision)
        merge(recipe, source, chosen.revision, target, chosen.dtype)
    except (OSError, ValueError) as error:
        print(f"merge_adapter: {error}", file=sys.stderr)
        return 1
    print(f"{chosen.name}: {target}")
    return 0


def merge(recipe: Merge, source: Path, revision: str, target: Path, dtype: str) -> None:
    """Writes the merged checkpoint, its processor beside it.

    Args:
        recipe: What is merged.
        source: The repository's files.
        revision: Noted in the result.
        target: The result; must not be there yet.
        dtype: Precision of the result; the merge itself is in float32.

    Raises:
        ValueError: the target is there already, or weights do not fit the base model.
        OSError: files are missing.
    """
    import torch

    if target.exists():
        raise ValueError(f"{target} is there already; remove it to merge anew")
    target.parent.mkdir(parents=True, exist_ok=True)
    model = _merged(recipe, source).to(getattr(torch, dtype))
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        made = Path(scratch) / "made"
        save(model, made)
        _processor(source).save_pretrained(made)
        note = {"repo": recipe.repo, "revision": revision, "adapter": recipe.adapter, "dtype": dtype}
        (made / "merged_from.json").write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
        shutil.move(made, target)


def _merged(recipe: Merge, source: Path) -> Any:
    import torch
    import transformers
    from peft import PeftModel

    model = getattr(transformers, recipe.model_class).from_pretrained(source, dtype=torch.float32)
    if recipe.trained_beside:
        beside = torch.load(source / recipe.trained_beside, map_location="cpu", weights_only=True)
        if strange := model.load_state_dict(beside, strict=False).unexpected_keys:
            raise ValueError(
                f"{source / recipe.trained_beside}: {len(strange)} weights that {recipe.model_class} has not: "
                f"{strange[0]} ..."
            )
    return PeftModel.from_pretrained(model, source, subfolder=recipe.adapter).merge_and_unload()


def _processor(source: Path) -> Any:
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(source)


def _fetched(repo: str, revision: str) -> Path:
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(repo, revision=revision))


if __name__ == "__main__":
    sys.exit(main())
