"""Builds a shrunken checkpoint of a real architecture: `python scripts/tiny_checkpoint.py ARCH OUT`.

With ARCH `all` each goes in OUT/ARCH.

Random weights, 1-4 MB, seconds to build, and the same class, processor and code path as the real one.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# Tensors this small are up to 90 times slower on two threads; torch reads it when it is imported.
os.environ["OMP_NUM_THREADS"] = "1"

from models.tiny import ARCHITECTURES, make


def main() -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("architecture", metavar="ARCH", help=f"{', '.join(ARCHITECTURES)}, or all")
    parser.add_argument("folder", metavar="OUT", type=Path)
    arguments = parser.parse_args()
    whole = arguments.architecture == "all"
    chosen = ARCHITECTURES if whole else (arguments.architecture,)
    try:
        for name in chosen:
            folder = arguments.folder / name if whole else arguments.folder
            print(
                f"{name}: {'built' if make(name, folder) else 'already there'}, {_megabytes(folder):.1f} MB"
            )
    except ValueError as error:
        print(f"tiny_checkpoint: {error}", file=sys.stderr)
        return 2
    return 0


def _megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


if __name__ == "__main__":
    sys.exit(main())
