"""Makes data/sounds/, what the conditions `background_sound` and `short_sounds` add: `python scripts/make_sounds.py`.

Arithmetic alone (background_sounds.py), so that nobody's licence is in it. Put a folder of your own recordings or music
in a condition's `sounds` for more.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from background_sounds import RATE_HZ, SOUNDS

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 8.0
PEAK = 0.5


def make(folder: Path) -> None:
    """Writes a FLAC of each sound, at 24 kHz and 16 bit."""
    import soundfile

    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, sound) in enumerate(SOUNDS.items()):
        samples = sound(SECONDS, np.random.default_rng(number))
        scaled = samples / np.abs(samples).max() * PEAK
        soundfile.write(folder / f"{name}.flac", scaled, RATE_HZ, subtype="PCM_16")


def main() -> None:
    """Reads the command line and makes the sounds."""
    parser = argparse.ArgumentParser(description="Make the background sounds anew.")
    parser.add_argument("--to", type=Path, default=ROOT / "data" / "sounds")
    make(parser.parse_args().to)


if __name__ == "__main__":
    main()
