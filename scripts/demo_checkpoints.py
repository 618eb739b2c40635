"""Puts a checkpoint of the demo's cascade where a retest watches: `python scripts/demo_checkpoints.py KIND`.

    original   Whisper tiny.en and SmolLM2 as they are
    copy       the same bytes under another name
    dtype      the language model saved in float32 instead of bfloat16
    damaged    noise on the recogniser's weights

Invariant: a checkpoint appears whole, with a file DONE, or not at all. Exit status: 0 made, 1 weights are missing, 2
wrong kind or the checkpoint is there.
"""

from __future__ import annotations

import argparse
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECOGNISER, LANGUAGE_MODEL = "whisper-tiny.en-ct2", "smollm2-135m-instruct"
NOISE = 0.2
"""Of what is added to the recogniser's matrices, against each one's own standard deviation."""
FLOAT16 = 4
"""CTranslate2's number for half precision."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes one checkpoint; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "checkpoints", help="watched folder (checkpoints)"
    )
    parser.add_argument(
        "--weights", type=Path, default=ROOT / "weights", help="where the demo's weights lie (weights)"
    )
    parser.add_argument("--step", type=int, default=0, help="number in the checkpoint's name")
    chosen = parser.parse_args(arguments)
    target = chosen.folder / f"step-{chosen.step}-{chosen.kind}"
    if target.exists():
        print(f"demo_checkpoints: {target} is there already", file=sys.stderr)
        return 2
    if lacking := [n for n in (RECOGNISER, LANGUAGE_MODEL) if not (chosen.weights / n).is_dir()]:
        print(
            f"demo_checkpoints: no {', '.join(lacking)}: python scripts/fetch_demo_weights.py",
            file=sys.stderr,
        )
        return 1
    chosen.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=chosen.folder.parent, prefix=".checkpoint-") as scratch:
        made = Path(scratch) / "made"
        shutil.copytree(chosen.weights / RECOGNISER, made / "recogniser")
        shutil.copytree(chosen.weights / LANGUAGE_MODEL, made / "language_model")
        KINDS[chosen.kind](made)
        (made / "DONE").touch()
        made.rename(target)
    print(target)
    return 0


def _as_it_is(folder: Path) -> None:
    """Nothing changes."""


def _other_dtype(folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    place = folder / "language_model"
    model = AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32)
    model.save_pretrained(place)


def _damaged(folder: Path) -> None:
    """Noise on every half-precision matrix of CTranslate2's file, as strong as a part of the matrix's own spread."""
    import numpy as np

    path = folder / "recogniser" / "model.bin"
    data = bytearray(path.read_bytes())
    generator = np.random.default_rng(0)
    for start, count in _half_precision(data):
        weights = np.frombuffer(data, dtype=np.float16, count=count, offset=start).astype(np.float32)
        noisy = weights + generator.normal(scale=NOISE * weights.std(), size=count)
        data[start : start + 2 * count] = noisy.astype(np.float16).tobytes()
    path.write_bytes(bytes(data))


def _half_precision(data: bytearray) -> Iterator[tuple[int, int]]:
    """Where the float16 variables of a CTranslate2 model.bin begin, and how many numbers each has."""
    at = 0

    def number(form: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from(f"<{form}", data, at)
        at += struct.calcsize(form)
        return int(value)

    def skip_name() -> None:
        nonlocal at
        length = number("H")
        at += length

    number("I")
    skip_name()
    number("I")
    for _ in range(number("I")):
        skip_name()
        shape = [number("I") for _ in range(number("B"))]
        kind, size = number("B"), number("I")
        if kind == FLOAT16 and len(shape) > 1:
            yield at, size // 2
        at += size


KINDS: Mapping[str, Callable[[Path], None]] = {
    "original": _as_it_is,
    "copy": _as_it_is,
    "dtype": _other_dtype,
    "damaged": _damaged,
}


if __name__ == "__main__":
    sys.exit(main())
