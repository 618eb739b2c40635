"""The result store: what models replied and what scorers said, as immutable Parquet parts below one folder or URL.

Invariant: a row that `flush` has counted survives `kill -9` and a power cut, and is in every view exactly once; a row
that it has not counted is there once or not at all. One driver appends (farm/lease.py); anyone reads at any time.

    <store>/replies/benchmark=../model=../part-*.parquet     key (trial_id, attempt, turn)
    <store>/scores/benchmark=../scorer=../part-*.parquet     key score_id
    <store>/gold/benchmark=../part-*.parquet                 key (task, item_key, annotator, annotation_version)
    <store>/speech/<2 hex>/<trial id>/<attempt>.<turn>.flac
    <store>/sessions/<2 hex>/<trial id>/<attempt>.0.flac     user left, assistant right
    <store>/cells/, environments/                            JSON
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from farm import compaction, ids, parts, views
from farm.files import MARKER, TEMPORARY, Files, StoreError
from farm.local_files import LocalFiles
from farm.object_files import ObjectFiles
from farm.plan import Progress
from farm.schema import (
    KEYS,
    SCHEMA_VERSION,
    TABLES,
    VERSION_KEY,
    check_row,
    check_version,
    to_table,
)
from farm.views import reply_duckdb_query

__all__ = ["Store", "StoreError", "reply_duckdb_query"]

GROUP_ROWS = 256
"""A group of rows becomes a part when it has this many,"""
GROUP_AGE_S = 1.0
"""or when its oldest row has waited this long."""

_TRIAL_ID = re.compile(r"[0-9A-Za-z_-]{2,}")
_KEEP_TEMPORARY = ("lease/",)


@dataclass(slots=True)
class _Group:
    """Rows of one partition that are not durable yet."""

    rows: list[Mapping[str, Any]] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)


class Store:
    """A result store. Pickled by its URL: a worker's copy is cheap and reads and puts files; the driver's appends rows.

    Not for several threads at once.
    """

    def __init__(self, url: str) -> None:
        self.files: Files = _open_files(url)
        self.url = self.files.url
        self.guard: Callable[[], None] = _unguarded
        """Called before rows are written or files removed; a held lease sets it and raises when it was lost."""
        self.durable: dict[str, int] = dict.fromkeys(TABLES, 0)
        """Rows made durable by this object, by table."""
        self._groups: dict[str, dict[str, _Group]] = {table: {} for table in TABLES}
        self._written_ns: int | None = None

    @classmethod
    def open(cls, url: str, *, create: bool = True) -> Store:
        """Opens the store at a local path or an fsspec URL (`s3://bucket/results`, `memory://x`).

        Args:
            url: where it is.
            create: make it where there is none; readers pass False, so that a misspelt path is not a new store.

        Raises:
            ValueError: it cannot be used: no such protocol, not writable, another schema version, none there.
        """
        store = cls(url)
        try:
            if not store._is_there():
                if not create:
                    raise ValueError(f"store={url}: there is no result store; run a sweep into it first")
                store.files.make_root()
                store.files.create(MARKER, json.dumps({VERSION_KEY.decode(): SCHEMA_VERSION}).encode())
        except StoreError as error:
            raise ValueError(f"store={url} cannot be used: {error}") from error
        return store

    def _is_there(self) -> bool:
        try:
            marker = json.loads(self.files.read(MARKER))
        except FileNotFoundError:
            return False
        version = str(marker.get(VERSION_KEY.decode(), "")).encode()
        check_version({VERSION_KEY: version}, f"{self.url}/{MARKER}")
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.url,)

    def append_replies(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Takes reply rows (`farm.records.reply_row`); all turns of an attempt belong into one call.

        Raises:
            ValueError: a row that could not be written (unknown or missing columns, a float that is not finite).
        """
        self._append("replies", rows)

    def append_scores(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Takes score rows; raises as `append_replies`."""
        self._append("scores", rows)

    def append_gold(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Takes annotations; raises as `append_replies`."""
        self._append("gold", rows)

    def _append(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        for row in rows:
            check_row(table, row)
        for row in rows:
            folder = parts.partition_folder(table, row)
            group = self._groups[table].setdefault(folder, _Group())
            group.rows.append({**row, "written_ns": self._next_ns()})

    def _next_ns(self) -> int:
        if self._written_ns is None:
            self._written_ns = parts.last_written_ns(self.files)
        self._written_ns = max(self._written_ns + 1, time.time_ns())
        return self._written_ns

    @property
    def buffered(self) -> int:
        """Rows that are not durable yet."""
        return sum(len(group.rows) for groups in self._groups.values() for group in groups.values())

    @property
    def durable_replies(self) -> int:
        """Reply rows made durable by this object."""
        return self.durable["replies"]

    def flush(self, force: bool = False) -> int:
        """Group commit: a part for each group of 256 rows; for all groups when a row is 1 s old, or with `force`.

        Replies go before scores: no score is durable before the reply it is of.

        Returns:
            Rows made durable, synced to the disk.

        Raises:
            StoreError: disk full, read-only or gone, or the lease was lost. The rows stay buffered; a later flush may
                succeed, and writes none twice.
        """
        force = force or self._oldest() <= time.monotonic() - GROUP_AGE_S
        due = {table: self._due(table, force) for table in TABLES}
        if due["scores"]:
            due["replies"] = list(self._groups["replies"])
        if any(due.values()):
            self.guard()
        return sum(self._commit(table, folder) for table, folders in due.items() for folder in folders)

    def _due(self, table: str, force: bool) -> list[str]:
        groups = self._groups[table].items()
        return [folder for folder, group in groups if force or len(group.rows) >= GROUP_ROWS]

    def _oldest(self) -> float:
        since = (group.since for groups in self._groups.values() for group in groups.values())
        return min(since, default=math.inf)

    def _commit(self, table: str, folder: str) -> int:
        rows = self._groups[table][folder].rows
        part = parts.part_bytes(to_table(table, rows))
        self.files.write(parts.new_part_uri(folder, rows[-1]["written_ns"]), part)
        del self._groups[table][folder]
        self.durable[table] += len(rows)
        return len(rows)

    def replies(
        self,
        *,
        benchmark: str | None = None,
        columns: Sequence[str] | None = None,
        cell_ids: Collection[str] | None = None,
    ) -> pa.Table:
        """The deduplicated view: of every trial the turns of its last attempt, in the order of writing.

        Args:
            benchmark: only of this one; reads only its parts.
            columns: which ones, in this order; all by default.
            cell_ids: only of these cells.

        Raises:
            ValueError: unknown columns, or a part of another schema version.
            StoreError: a part is damaged, or the store is gone.
        """
        rows = self._read("replies", benchmark, columns, cell_ids)
        return views.last_attempts(rows).select(columns or TABLES["replies"].names)

    def scores(
        self,
        *,
        benchmark: str | None = None,
        columns: Sequence[str] | None = None,
        cell_ids: Collection[str] | None = None,
    ) -> pa.Table:
        """Scores, of each score_id the last written one; arguments and errors as `replies`.

        Scores of earlier attempts are in it: join on (trial_id, attempt, turn).
        """
        rows = self._read("scores", benchmark, columns, cell_ids)
        return views.last_written(rows, KEYS["scores"]).select(columns or TABLES["scores"].names)

    def gold(self, *, benchmark: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Annotations, of each (item, annotator, version) the last written one; errors as `replies`."""
        rows = self._read("gold", benchmark, columns, None)
        return views.last_written(rows, KEYS["gold"]).select(columns or TABLES["gold"].names)

    def _read(
        self,
        table: str,
        benchmark: str | None,
        columns: Sequence[str] | None,
        cell_ids: Collection[str] | None,
    ) -> pa.Table:
        known = TABLES[table].names
        if unknown := sorted(set(columns or ()) - set(known)):
            raise ValueError(f"{table}: unknown columns {unknown}; there are {known}")
        wanted = dict.fromkeys([*(columns or known), *KEYS[table], "written_ns"])
        folder = f"{table}/{parts.partition_value('benchmark', benchmark)}" if benchmark else None
        return parts.read_rows(self.files, table, wanted, folder=folder, cell_ids=cell_ids)

    def progress(self, *, count_done: bool = False) -> Progress:
        """The resume scan: trials whose last attempt has no failure, and how often the failed ones were tried.

        Args:
            count_done: count the attempts of done trials too (to run them again under the next number).
        """
        columns = ["trial_id", "attempt", "turn", "failure_kind", "written_ns"]
        return views.progress(parts.read_rows(self.files, "replies", columns), count_done=count_done)

    def scored(self, *, benchmark: str | None = None) -> dict[str, str]:
        """score_id -> status of every score, of one benchmark or all."""
        rows = self.scores(benchmark=benchmark, columns=["score_id", "status"])
        statuses = rows["status"].combine_chunks().dictionary_encode()
        names = statuses.dictionary.to_pylist()
        score_ids = rows["score_id"].to_pylist()
        return dict(zip(score_ids, (names[i] for i in statuses.indices.to_pylist()), strict=True))

    def speech_uri(self, trial_id: str, attempt: int, turn: int) -> str:
        """Where a reply's speech belongs, relative to the store.

        Raises:
            ValueError: a trial id that is no plain name.
        """
        if not _TRIAL_ID.fullmatch(trial_id):
            raise ValueError(f"trial id {trial_id!r}: letters, digits, '_' and '-' only")
        return f"speech/{trial_id[:2]}/{trial_id}/{int(attempt)}.{int(turn)}.flac"

    def session_uri(self, trial_id: str, attempt: int) -> str:
        """Where both sides of a session belong, in one stereo file; raises as `speech_uri`."""
        return self.speech_uri(trial_id, attempt, 0).replace("speech/", "sessions/", 1)

    def put(self, uri: str, data: bytes) -> None:
        """Writes a file whole or not at all, durable when it returns.

        Raises:
            ValueError: the uri leaves the store.
            StoreError: disk full, read-only or gone.
        """
        self.files.write(uri, data)

    def get(self, uri: str) -> bytes:
        """A file's bytes.

        Raises:
            ValueError: the uri leaves the store.
            FileNotFoundError: there is no such file.
            StoreError: it cannot be read.
        """
        return self.files.read(uri)

    def uris(self, folder: str) -> list[str]:
        """Every file below a folder of the store (`cells`), sorted; empty where there is none."""
        return [e.uri for e in self.files.list(folder) if not _is_temporary(e.uri)]

    def sweep_orphans(self, known: Iterable[str] = ()) -> list[str]:
        """Removes speech whose reply row was never kept, and files left half-written; call it under the lease only.

        Args:
            known: speech uris to leave beside those of the rows that exist (of any attempt).

        Returns:
            The uris removed.
        """
        self.guard()
        speech = parts.read_rows(self.files, "replies", ["speech_uri"])["speech_uri"]
        kept = {*known, *speech.to_pylist(), *(row.get("speech_uri") for row in self._buffered_replies())}
        orphans = [e.uri for e in self.files.list("speech") if e.uri not in kept]
        left = [
            e.uri
            for e in self.files.list("")
            if _is_temporary(e.uri) and not e.uri.startswith(_KEEP_TEMPORARY)
        ]
        removed = sorted({*orphans, *left})
        for uri in removed:
            self.files.remove(uri)
        return removed

    def _buffered_replies(self) -> Iterable[Mapping[str, Any]]:
        return (row for group in self._groups["replies"].values() for row in group.rows)

    def compact(self) -> None:
        """Merges small parts; no view changes, at whatever moment it is killed. Call it under the lease only."""
        self.guard()
        compaction.compact(self.files)

    def environment(self, packages: Mapping[str, str]) -> str:
        """Keeps a list of installed packages (name -> version) once, as environments/<digest>.json.

        Returns:
            The digest that goes into reply rows.
        """
        digest = ids.digest(dict(packages))[: ids.ID_DIGITS]
        self.files.create(
            f"environments/{digest}.json", json.dumps(packages, indent=1, sort_keys=True).encode()
        )
        return digest


def _unguarded() -> None:
    return None


def _is_temporary(uri: str) -> bool:
    return uri.rsplit("/", 1)[-1].startswith(TEMPORARY)


def _open_files(url: str) -> Files:
    local = url.removeprefix("file://")
    if not local:
        raise ValueError("store is empty: give a folder or a URL such as s3://bucket/results")
    return ObjectFiles(url) if "://" in local else LocalFiles(Path(local).expanduser())
