"""Fetches the weights of quality scorers that no package carries, and checks them.

    python scripts/fetch_weights.py nisqa              # into weights/, 1 MB
    python scripts/fetch_weights.py utmos --to FOLDER  # 413 MB

Invariant: a file has its final name only when it is whole and its SHA-256 is the known one; what is there and right is
not fetched again. Exit status: 0 all there, 1 one could not be fetched or is not the known file, 2 unknown name.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

TIMEOUT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where one file of weights comes from and what may be done with it."""

    file: str
    licence: str
    url: str
    """An `http(s)` address, or `hub:owner/name` of a repository on the Hugging Face hub."""
    sha256: str = ""
    """Empty where the publisher gives none: then the digest is printed, to be compared with a colleague's."""


SOURCES: Mapping[str, Source] = {
    "nisqa": Source(
        file="nisqa.tar",
        licence="CC BY-NC-SA 4.0: not for commercial use; cite Mittag et al., Interspeech 2021",
        url="https://github.com/gabrielmittag/NISQA/raw/refs/heads/master/weights/nisqa.tar",
        sha256="7ec4cf937514dd3f8860b21e66fabd8ca87a168572675ef8d979c4c4ad2e805c",
    ),
    "utmos": Source(
        file="utmos_state_dict.pt",
        licence="converted from the UTMOS22 authors' checkpoint; cite Saeki et al., Interspeech 2022",
        url="hub:Blinorot/UTMOS-PyTorch",
    ),
}


def main(arguments: Sequence[str] | None = None, sources: Mapping[str, Source] = SOURCES) -> int:
    """Fetches each named file; returns the exit status.

    Args:
        arguments: as on the command line, without the program.
        sources: name -> where it comes from.
    """
    parser = argparse.ArgumentParser(description="Fetches weights of quality scorers.")
    parser.add_argument("names", nargs="+", choices=sorted(sources), metavar="NAME", help=", ".join(sources))
    default = Path(__file__).resolve().parents[1] / "weights"
    parser.add_argument("--to", type=Path, default=default, help=f"folder (default: {default})")
    chosen = parser.parse_args(arguments)
    return max([_report(name, sources[name], chosen.to) for name in chosen.names])


def _report(name: str, source: Source, folder: Path) -> int:
    print(f"{name}: licence: {source.licence}")
    try:
        print(f"{name}: {fetch(source, folder)}")
    except (OSError, HTTPException, ValueError) as error:
        first_line = (str(error) or type(error).__name__).split("\n")[0]
        print(f"{name}: not fetched from {source.url}: {first_line}", file=sys.stderr)
        return 1
    return 0


def fetch(source: Source, folder: Path) -> str:
    """Brings one file into a folder, unless it is there already; says in a line what was done.

    Raises:
        OSError, HTTPException: it cannot be reached or written.
        ValueError: what came, or what lies there, is not the known file.
    """
    target = folder / source.file
    if target.exists():
        digest = _checked(target, source, f"{target}; remove it to fetch it anew")
        return f"{target} is there already, SHA-256 {digest}"
    folder.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{source.file}.", dir=folder))
    try:
        fetched = _download(source, partial)
        digest = _checked(fetched, source, "what came")
        os.replace(fetched, target)
    finally:
        shutil.rmtree(partial)
    return f"{target}, {target.stat().st_size:,} bytes, SHA-256 {digest}"


def _download(source: Source, folder: Path) -> Path:
    if source.url.startswith("hub:"):
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(source.url.removeprefix("hub:"), source.file, local_dir=folder))
    path = folder / source.file
    with urllib.request.urlopen(source.url, timeout=TIMEOUT_S) as reply, path.open("wb") as file:
        shutil.copyfileobj(reply, file)
    return path


def _checked(path: Path, source: Source, what: str) -> str:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if source.sha256 and digest != source.sha256:
        raise ValueError(f"SHA-256 {digest}, not {source.sha256}: {what}")
    return digest


if __name__ == "__main__":
    sys.exit(main())
