"""What a benchmark needs to know of its audio files before anything runs: their digests and true lengths.

Invariant: a file that cannot be decoded is a `Probe` with the reason, so that its trials fail one by one and stay in
the denominator; only a file that is not there is an error. Values are remembered on disk (farm/digests.py).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache as once
from importlib.metadata import version
from pathlib import Path

from audio.files import decode_bytes, read
from farm import digests

THREADS = 8
"""Files probed at once; reading and decoding release the interpreter's lock."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A file's bytes and length."""

    sha256: str
    """Of its bytes, 64 hex digits."""
    seconds: float
    """Decoded, not the header's; 0.0 where there is a problem."""
    problem: str
    """Why it cannot be decoded; empty where it can."""


def probe(path: str | Path, cache: str | Path | None = None) -> Probe:
    """Digest and true length of one audio file; `cache` is the cache's file, the user's by default.

    Raises:
        ValueError: the file is missing or cannot be read.
    """
    return probe_many([path], cache)[0]


def probe_many(paths: Sequence[str | Path], cache: str | Path | None = None) -> list[Probe]:
    """`probe` of many files, in order, several at once.

    Raises:
        ValueError: files are missing (the message lists all of them) or cannot be read.
    """
    threads = min(THREADS, os.cpu_count() or 1)
    values = digests.remembered(paths, _kind(), _probed, cache=cache, threads=threads)
    return [Probe(*json.loads(value)) for value in values]


@once
def _kind() -> str:
    """Another decoder may read what the last one could not, so its version is part of what is remembered."""
    return f"probe 1, soundfile {version('soundfile')}, av {version('av')}"


def _probed(path: digests.StrPath) -> str:
    data = read(Path(path))
    sha256 = hashlib.sha256(data).hexdigest()
    try:
        return json.dumps([sha256, decode_bytes(data).seconds, ""])
    except ValueError as error:
        return json.dumps([sha256, 0.0, str(error)])
