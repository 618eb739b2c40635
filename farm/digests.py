"""What was once computed from a file's bytes, remembered on disk: SHA-256 of files and folders, lengths of audio.

Invariant: a remembered value is used only while the file's path, size and modification time are what they were when
its bytes were read; a file younger than two seconds is not remembered, since it could change again without its time
changing. Several processes may share the cache. A cache that cannot be used costs time and a warning, never a result.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from farm import ids

StrPath = str | os.PathLike[str]

SETTLED_NS = 2_000_000_000
"""Age from which a file's modification time tells of every later write, on coarse file systems too."""
BATCH = 256
"""Files whose values are written in one transaction: an interrupted run keeps the batches before."""
LOCK_WAIT_S = 30.0

_log = logging.getLogger(__name__)


class _Key(NamedTuple):
    path: str
    size: int
    mtime_ns: int


def cache_path() -> Path:
    """Where values are remembered: `$XDG_CACHE_HOME/speechfarm/files.sqlite`, `~/.cache` where that is not set."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "speechfarm" / "files.sqlite"


def file_digest(path: StrPath, cache: StrPath | None = None) -> str:
    """SHA-256 of a file's bytes, 64 hex digits.

    Args:
        path: the file; a symlink is followed.
        cache: the cache's file, `cache_path()` by default.

    Raises:
        ValueError: the file is missing or cannot be read.
    """
    return remembered([path], "sha256", _sha256, cache=cache)[0]


def folder_digest(path: StrPath, cache: StrPath | None = None) -> str:
    """SHA-256 over a folder's sorted relative file names and their digests, 64 hex digits.

    Symlinks are followed (hub caches link to blobs), hidden files and folders (`.cache`, `.git`) are left out: two
    folders with the same content have one digest, wherever they lie.

    Raises:
        ValueError: not a folder, no file in it, or a file that is missing (a broken link) or cannot be read.
    """
    if not os.path.isdir(path):
        raise ValueError(f"{path}: no such folder")
    files = sorted(_files(os.fspath(path)))
    if not files:
        raise ValueError(f"{path}: no files in this folder")
    digests = remembered([os.path.join(path, name) for name in files], "sha256", _sha256, cache=cache)
    return ids.digest([list(pair) for pair in zip(files, digests, strict=True)])


def remembered(
    paths: Sequence[StrPath],
    kind: str,
    compute: Callable[[StrPath], str],
    *,
    cache: StrPath | None = None,
    threads: int = 1,
) -> list[str]:
    """What `compute` says of each file, from the cache where the file has not changed since.

    Args:
        paths: the files.
        kind: names what is computed and its version; values of different kinds are kept apart.
        compute: file -> value; called in threads.
        cache: the cache's file, `cache_path()` by default.
        threads: how many files are computed at once.

    Raises:
        ValueError: files are missing; the message lists all of them. Whatever `compute` raises.
    """
    keys = _keys(paths)
    store = Path(cache) if cache else cache_path()
    values = _lookup(store, kind, keys)
    todo = [key for key in dict.fromkeys(keys) if key not in values]
    names = dict(zip(keys, paths, strict=True))
    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(todo), BATCH):
            batch = todo[start : start + BATCH]
            began_ns = time.time_ns()
            found = dict(zip(batch, pool.map(compute, [names[key] for key in batch]), strict=True))
            values |= found
            _remember(store, kind, {k: v for k, v in found.items() if _settled(k, began_ns)})
    return [values[key] for key in keys]


def _sha256(path: StrPath) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error


def _files(root: str) -> Iterator[str]:
    """Relative names of a folder's files, links followed; a link back to a folder above is not entered again."""
    for folder, subfolders, names in os.walk(root, followlinks=True):
        here = os.path.realpath(folder)
        subfolders[:] = [
            s
            for s in subfolders
            if not s.startswith(".") and not _above(os.path.realpath(os.path.join(folder, s)), here)
        ]
        yield from (Path(folder, n).relative_to(root).as_posix() for n in names if not n.startswith("."))


def _above(folder: str, here: str) -> bool:
    return os.path.commonpath([folder, here]) == folder


def _keys(paths: Sequence[StrPath]) -> list[_Key]:
    keys, missing = [], []
    for path in paths:
        real = os.path.realpath(path)
        if os.path.isfile(real):
            stat = os.stat(real)
            keys.append(_Key(real, stat.st_size, stat.st_mtime_ns))
        else:
            missing.append(os.fspath(path))
    if missing:
        raise ValueError(f"no such file: {', '.join(missing)}")
    return keys


def _settled(key: _Key, began_ns: int) -> bool:
    """Whether the value surely belongs to the key: the file had come to rest before it was read, and still has."""
    return began_ns - key.mtime_ns > SETTLED_NS and os.path.isfile(key.path) and _keys([key.path]) == [key]


def _connect(store: Path) -> sqlite3.Connection:
    store.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(store, timeout=LOCK_WAIT_S, isolation_level=None)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS files (path TEXT, kind TEXT, size INTEGER, mtime_ns INTEGER, value TEXT,"
        " PRIMARY KEY (path, kind))"
    )
    return connection


def _lookup(store: Path, kind: str, keys: Sequence[_Key]) -> dict[_Key, str]:
    wanted = set(keys)
    found: dict[_Key, str] = {}
    paths = [key.path for key in keys]
    try:
        with closing(_connect(store)) as connection:
            for start in range(0, len(paths), BATCH):
                some = paths[start : start + BATCH]
                query = "SELECT path, size, mtime_ns, value FROM files WHERE kind = ? AND path IN "
                rows = connection.execute(f"{query} ({', '.join('?' * len(some))})", [kind, *some])
                found |= {_Key(*row[:3]): row[3] for row in rows}
    except (sqlite3.Error, OSError) as error:
        _log.warning("cache %s cannot be read (%s): everything is computed; it may be deleted", store, error)
        return {}
    return {key: value for key, value in found.items() if key in wanted}


def _remember(store: Path, kind: str, values: dict[_Key, str]) -> None:
    if not values:
        return
    rows = [(key.path, kind, key.size, key.mtime_ns, value) for key, value in values.items()]
    try:
        with closing(_connect(store)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute("COMMIT")
    except (sqlite3.Error, OSError) as error:
        _log.warning("cache %s cannot be written (%s): values will be computed again", store, error)
