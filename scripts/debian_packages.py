"""Data files out of Debian packages, for weights that no Python or npm package carries.

Invariant: a package is data here: none of its scripts is run, nothing is installed.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import urllib.request
from pathlib import Path

POOL = "http://deb.debian.org/debian/"
"""Debian's mirrors; what comes from them is checked against a pinned SHA-256, so plain HTTP will do."""
TIMEOUT_S = 60
_MAGIC = b"!<arch>\n"
_HEADER = 60


def download(path: str, into: Path) -> None:
    """Fetches one package of the pool: `pool/main/w/wordnet/wordnet-base_3.0-37_all.deb`.

    Raises:
        OSError: it cannot be reached or written.
    """
    with (
        urllib.request.urlopen(POOL + path, timeout=TIMEOUT_S) as reply,
        (into / path.rsplit("/", 1)[-1]).open("wb") as out,
    ):
        shutil.copyfileobj(reply, out)


def data(package: Path) -> tarfile.TarFile:
    """The files that a package would install, as a tar archive: the member data.tar.* of its ar archive.

    Raises:
        ValueError: the file is no Debian package.
    """
    content = package.read_bytes()
    if not content.startswith(_MAGIC):
        raise ValueError(f"{package.name} is no Debian package")
    at = len(_MAGIC)
    while at + _HEADER <= len(content):
        name = content[at : at + 16].decode().strip().rstrip("/")
        size = int(content[at + 48 : at + 58])
        at += _HEADER
        if name.startswith("data.tar"):
            return tarfile.open(fileobj=io.BytesIO(content[at : at + size]))
        at += size + size % 2
    raise ValueError(f"{package.name} holds no data")
