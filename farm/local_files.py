"""The result store's files on a local disk or a network file system.

Invariant: a file is written under a temporary name in its own folder, synced, renamed, and its folder synced, before
the call returns; a store whose marker is missing (unmounted, deleted) is never written to.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.fs

from farm.files import MARKER, TEMPORARY, Entry, check_uri, store_error

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class LocalFiles:
    """Files on a local or network file system."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.abspath(root))
        self.url = str(self._root)

    def _path(self, uri: str) -> Path:
        return self._root / check_uri(uri)

    @contextmanager
    def _errors(self, uri: str, *, may_miss: bool = False) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if may_miss and isinstance(error, FileNotFoundError):
                raise
            raise store_error(error, str(self._root / uri), self._root) from error

    def make_root(self) -> None:
        """Creates the store's folder."""
        with self._errors(""):
            self._root.mkdir(parents=True, exist_ok=True)

    def write(self, uri: str, data: bytes) -> None:
        """Writes or replaces a file, whole or not at all; synced when it returns."""
        with self._errors(uri):
            temporary, path = self._temporary(uri, data)
            try:
                os.replace(temporary, path)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise
            _sync_folder(path.parent)

    def create(self, uri: str, data: bytes) -> bool:
        """Writes a file unless it is there: by a hard link, which appears with its content."""
        with self._errors(uri):
            temporary, path = self._temporary(uri, data)
            try:
                created = _link(temporary, path, data)
            finally:
                temporary.unlink(missing_ok=True)
            _sync_folder(path.parent)
            return created

    def _temporary(self, uri: str, data: bytes) -> tuple[Path, Path]:
        path = self._path(uri)
        if uri != MARKER and not (self._root / MARKER).exists():
            raise FileNotFoundError(errno.ENOENT, f"no {MARKER} in {self._root}")
        self._make_folder(path.parent)
        temporary = path.with_name(f"{TEMPORARY}{uuid4().hex}")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return temporary, path

    def _make_folder(self, folder: Path) -> None:
        missing = []
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for new in reversed(missing):
            new.mkdir(exist_ok=True)
            _sync_folder(new.parent)

    def read(self, uri: str) -> bytes:
        """A file's bytes; FileNotFoundError where there is none."""
        with self._errors(uri, may_miss=True):
            return self._path(uri).read_bytes()

    def remove(self, uri: str) -> None:
        """Removes a file, temporary ones too, and the folders that it leaves empty below the first level."""
        with self._errors(uri):
            path = self._root / uri
            path.unlink(missing_ok=True)
            for folder in path.parents:
                if len(folder.relative_to(self._root).parts) < 2 or not _remove_empty(folder):
                    break

    def move(self, old: str, new: str) -> None:
        """Renames a file: needs no free space."""
        with self._errors(old, may_miss=True):
            os.replace(self._path(old), self._path(new))

    def list(self, folder: str) -> list[Entry]:
        """All files below a folder, sorted by uri."""
        with self._errors(folder):
            return sorted(_walk(self._root / folder, folder), key=lambda entry: entry.uri)

    def touch(self, uri: str, data: bytes) -> None:
        """Sets the file's time to the file system's now: needs no free space."""
        with self._errors(uri, may_miss=True):
            os.utime(self._path(uri))

    def age_s(self, uri: str) -> float:
        """Seconds since a file was written or touched, against a fresh file's time on the same disk."""
        with self._errors(uri, may_miss=True):
            path = self._path(uri)
            written = path.stat().st_mtime
            probe = path.with_name(f"{TEMPORARY}{uuid4().hex}")
            probe.touch()
            try:
                return probe.stat().st_mtime - written
            finally:
                probe.unlink(missing_ok=True)

    def arrow(self, uri: str) -> tuple[Any, str]:
        """A pyarrow file system and the file's path in it."""
        return pyarrow.fs.LocalFileSystem(), str(self._path(uri))


def _link(temporary: Path, path: Path, data: bytes) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _create_in_place(path, data)
    return True


def _create_in_place(path: Path, data: bytes) -> bool:
    """For file systems without hard links: exclusive all the same, though not whole after a crash."""
    try:
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            return False
        raise
    return True


def _walk(folder: Path, uri: str) -> Iterator[Entry]:
    try:
        found = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in found:
        below = f"{uri}/{entry.name}" if uri else entry.name
        if entry.is_dir():
            yield from _walk(Path(entry.path), below)
        else:
            try:
                yield Entry(below, entry.stat().st_size)
            except FileNotFoundError:  # removed since it was listed
                continue
