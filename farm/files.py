"""What the result store needs of a file system: whole files under relative names, or an error that says what to mend.

Invariant: a name appears only with its full content, durable when the call returns; no uri leaves the store.
"""

from __future__ import annotations

import errno
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

MARKER = "store.json"
"""Says that a folder is a result store: a mount that went away, or a deleted folder, lacks it."""

TEMPORARY = ".tmp-"
"""What a name starts with until its content is whole."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


class StoreError(Exception):
    """The store cannot be used any more: full, read-only, damaged or gone. Says where, and what to free or mend."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a store."""

    uri: str
    """Relative to the store, with `/`."""
    size: int
    """In bytes."""


class Files(Protocol):
    """What the store needs of a file system. Every uri is relative; every method may raise StoreError."""

    url: str

    def make_root(self) -> None:
        """Creates the store's folder."""
        ...

    def write(self, uri: str, data: bytes) -> None:
        """Writes or replaces a file, whole or not at all."""
        ...

    def create(self, uri: str, data: bytes) -> bool:
        """Writes a file unless it is there; False where it is. Of concurrent callers one gets True."""
        ...

    def read(self, uri: str) -> bytes:
        """A file's bytes; FileNotFoundError where there is none."""
        ...

    def remove(self, uri: str) -> None:
        """Removes a file; one that is gone already is no error. Folders left empty go too."""
        ...

    def move(self, old: str, new: str) -> None:
        """Renames a file; FileNotFoundError where there is none."""
        ...

    def list(self, folder: str) -> list[Entry]:
        """All files below a folder, temporary ones too, sorted by uri; empty where there is no folder."""
        ...

    def touch(self, uri: str, data: bytes) -> None:
        """Makes a file of that content new again; FileNotFoundError where it is gone (local only)."""
        ...

    def age_s(self, uri: str) -> float:
        """Seconds since a file was written or touched, by the clock of the disk, not of this machine."""
        ...

    def arrow(self, uri: str) -> tuple[Any, str]:
        """A pyarrow file system and the file's path in it."""
        ...


def check_uri(uri: str) -> str:
    """Returns a uri that stays inside the store.

    Raises:
        ValueError: it is absolute, climbs, is empty, or names a temporary file.
    """
    parts = uri.split("/")
    if "\\" in uri or "\0" in uri or ":" in parts[0] or any(part in ("", ".", "..") for part in parts):
        raise ValueError(
            f"{uri!r} is no path inside the store; use names joined by single '/', without '.' or '..'"
        )
    if parts[-1].startswith(TEMPORARY):
        raise ValueError(f"{uri!r}: names that start with {TEMPORARY!r} are kept for files being written")
    return uri


def store_error(error: OSError, where: str, root: Path | None = None) -> StoreError:
    """What an operating system error means for the store, and what to do."""
    kept = "what was written so far is kept; run the same command again to go on"
    if error.errno in _FULL:
        free = (
            f"{shutil.disk_usage(root).free / 2**20:.1f} MiB free" if root and root.exists() else "no space"
        )
        return StoreError(f"{where}: disk full ({free}); free space there or raise the quota. {kept}")
    if error.errno in _READ_ONLY:
        return StoreError(
            f"{where}: cannot be written ({error.strerror or error}); mend the mount or the permissions. {kept}"
        )
    if isinstance(error, FileNotFoundError) or error.errno in (errno.ESTALE, errno.ENOTCONN, errno.ENODEV):
        return StoreError(f"{where}: the store is gone ({error.strerror or error}); mount it again. {kept}")
    return StoreError(f"{where}: {error}; mend the disk or the connection. {kept}")
