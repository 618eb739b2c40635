"""The result store's files behind an fsspec URL: S3, GCS, Azure, or memory for tests.

Invariant: a put is whole or not there; `create` is as exclusive as the store's conditional put (S3 has one).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pyarrow.fs

from farm.files import TEMPORARY, Entry, StoreError, check_uri, store_error


class ObjectFiles:
    """Files behind an fsspec URL: a put is whole, `create` is as exclusive as the store's conditional put."""

    def __init__(self, url: str) -> None:
        import fsspec

        try:
            fs, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except ImportError as error:
            raise ValueError(f"store={url}: {error}") from error
        except ValueError as error:
            known = "a local folder, file://, s3://, gs://, abfs:// (any protocol of fsspec)"
            raise ValueError(f"store={url}: {error}; choose from {known}") from error
        self.url = url.rstrip("/")
        self._fs: Any = fs
        self._root: str = root.rstrip("/")

    def _path(self, uri: str) -> str:
        return f"{self._root}/{check_uri(uri)}"

    @contextmanager
    def _errors(self, uri: str, *, may_miss: bool = False) -> Iterator[None]:
        where = f"{self.url}/{uri}"
        try:
            yield
        except OSError as error:
            if may_miss and isinstance(error, FileNotFoundError):
                raise
            raise store_error(error, where) from error
        except Exception as error:
            # Clients of object stores raise classes of their own (botocore, aiohttp ...): all mean the same here.
            raise StoreError(f"{where}: {type(error).__name__}: {error}; mend the connection") from error

    def make_root(self) -> None:
        """Nothing: object stores have no folders, and a bucket is not ours to make."""

    def write(self, uri: str, data: bytes) -> None:
        """Puts a file."""
        path = self._path(uri)
        with self._errors(uri):
            self._fs.pipe_file(path, data)

    def create(self, uri: str, data: bytes) -> bool:
        """Puts a file unless it is there (`If-None-Match: *` on S3)."""
        path = self._path(uri)
        with self._errors(uri):
            try:
                self._fs.pipe_file(path, data, mode="create")
            except FileExistsError:
                return False
            return True

    def read(self, uri: str) -> bytes:
        """A file's bytes; FileNotFoundError where there is none."""
        path = self._path(uri)
        with self._errors(uri, may_miss=True):
            return bytes(self._fs.cat_file(path))

    def remove(self, uri: str) -> None:
        """Removes a file; one that is gone already is no error."""
        with self._errors(uri):
            try:
                self._fs.rm_file(f"{self._root}/{uri}")
            except FileNotFoundError:
                return

    def move(self, old: str, new: str) -> None:
        """Copies, then removes: not atomic on object stores."""
        self.write(new, self.read(old))
        self.remove(old)

    def list(self, folder: str) -> list[Entry]:
        """All files below a folder, sorted by uri."""
        with self._errors(folder):
            found = self._fs.find(f"{self._root}/{folder}".rstrip("/"), detail=True)
            entries = [Entry(self._relative(path), int(info["size"])) for path, info in found.items()]
            return sorted(entries, key=lambda entry: entry.uri)

    def _relative(self, path: str) -> str:
        return path.lstrip("/").removeprefix(self._root.lstrip("/")).lstrip("/")

    def touch(self, uri: str, data: bytes) -> None:
        """Puts the file again."""
        self.write(uri, data)

    def age_s(self, uri: str) -> float:
        """Seconds since a file was put, against a fresh object's time in the same store."""
        path = self._path(uri)
        with self._errors(uri, may_miss=True):
            probe = f"{path.rsplit('/', 1)[0]}/{TEMPORARY}{uuid4().hex}"
            self._fs.pipe_file(probe, b"")
            try:
                age = self._fs.modified(probe) - self._fs.modified(path)
            finally:
                self._fs.rm_file(probe)
            return float(age.total_seconds())

    def arrow(self, uri: str) -> tuple[Any, str]:
        """A pyarrow file system and the file's path in it."""
        return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(self._fs)), self._path(uri)
