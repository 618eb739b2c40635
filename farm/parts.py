"""Parquet parts: how rows become immutable files of a table, and which of the files count.

Invariant: a part is complete from the moment its name exists. Its rows carry `written_ns`, which orders all rows ever
appended and makes a row that is found twice (in a part and in the merged part that replaces it) the same row: the views
of farm/views.py count it once at every moment of a compaction. `_manifest.json` names what a merged part replaces, so
that nobody reads both.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from farm.files import Entry, Files, StoreError
from farm.schema import PARTITIONS, TABLES, check_version

READERS = 8
"""Parts read, or removed, at once."""

ROW_GROUP_ROWS = 8192
"""A merged part's rows are sorted by cell: reading one cell skips the row groups of the others."""

LISTINGS = 20
"""Times that a reader begins again when a compaction moves parts under it."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the compaction under way, or the last one, has replaced."""

    generation: int = 0
    """Goes up with every change: two equal readings around a listing prove that it is consistent."""
    replaced: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Merged part -> the parts that are void once it exists."""


def manifest_uri(table: str) -> str:
    """Where a table's manifest lies; readers of plain Parquet skip names that start with `_`."""
    return f"{table}/_manifest.json"


def read_manifest(files: Files, table: str) -> Manifest:
    """A table's manifest; generation 0 where it was never compacted."""
    try:
        raw = json.loads(files.read(manifest_uri(table)))
    except FileNotFoundError:
        return Manifest()
    return Manifest(raw["generation"], raw["replaced"])


def write_manifest(files: Files, table: str, manifest: Manifest) -> None:
    """Commits a manifest."""
    raw = {"generation": manifest.generation, "replaced": manifest.replaced}
    files.write(manifest_uri(table), json.dumps(raw, indent=1).encode())


def partition_folder(table: str, values: Mapping[str, Any]) -> str:
    """`replies/benchmark=echomind/model=cascade_cpu`, the values percent-encoded."""
    return "/".join([table, *(partition_value(name, values[name]) for name in PARTITIONS[table])])


@lru_cache(maxsize=1024)
def partition_value(name: str, value: str) -> str:
    """`model=a%2Fb`: one folder name, whatever the value holds."""
    return f"{name}={quote(value, safe='')}"


def new_part_uri(folder: str, last_written_ns: int) -> str:
    """A part's name: sorts by its last row, and is nobody else's."""
    return f"{folder}/part-{last_written_ns:020d}-{uuid4().hex[:12]}.parquet"


def is_part(uri: str) -> bool:
    """Whether a file is a part (and not a manifest or a temporary file)."""
    name = uri.rsplit("/", 1)[-1]
    return name.startswith("part-") and name.endswith(".parquet")


def part_bytes(rows: pa.Table, *, merged: bool = False) -> bytes:
    """A table as the bytes of one Parquet file: written fast, or (merged) small and in row groups."""
    sink = pa.BufferOutputStream()
    if merged:
        pq.write_table(rows, sink, compression="zstd", row_group_size=ROW_GROUP_ROWS)
    else:
        pq.write_table(rows, sink, compression="snappy")
    written: bytes = sink.getvalue().to_pybytes()
    return written


def last_written_ns(files: Files) -> int:
    """The highest `written_ns` in the store, from the parts' names."""
    names = (e.uri.rsplit("/", 1)[-1] for table in TABLES for e in files.list(table) if is_part(e.uri))
    return max((int(name.split("-")[1]) for name in names), default=0)


def live_parts(files: Files, table: str, folder: str | None = None) -> list[Entry]:
    """The parts that count, oldest first: those that exist and that no existing merged part replaces.

    Args:
        files: the store's files.
        table: which table.
        folder: only the parts below this one.
    """
    for _ in range(LISTINGS):
        before = read_manifest(files, table)
        found = [entry for entry in files.list(folder or table) if is_part(entry.uri)]
        if read_manifest(files, table).generation == before.generation:
            there = {entry.uri for entry in found}
            void = {uri for new, old in before.replaced.items() if new in there for uri in old}
            live = [entry for entry in found if entry.uri not in void]
            return sorted(live, key=lambda entry: entry.uri.rsplit("/", 1)[-1])
    raise StoreError(f"{files.url}/{table}: compacted over and over while it was read; wait for it to end")


def read_rows(
    files: Files,
    table: str,
    columns: Iterable[str],
    *,
    folder: str | None = None,
    cell_ids: Collection[str] | None = None,
) -> pa.Table:
    """Rows of all parts that count, not deduplicated, oldest part first.

    Args:
        files: the store's files.
        table: which table.
        columns: the columns to read.
        folder: only the parts below this one.
        cell_ids: only the rows of these cells.

    Raises:
        ValueError: a part of another schema version.
        StoreError: a part is damaged.
    """
    names = list(columns)
    for _ in range(LISTINGS):
        try:
            return read_parts(files, table, live_parts(files, table, folder), names, cell_ids)
        except FileNotFoundError:  # merged into another part since it was listed
            continue
    raise StoreError(f"{files.url}/{table}: compacted over and over while it was read; wait for it to end")


def read_parts(
    files: Files,
    table: str,
    parts: Sequence[Entry],
    columns: Sequence[str],
    cell_ids: Collection[str] | None = None,
) -> pa.Table:
    """Rows of the given parts, in their order; FileNotFoundError where one is gone."""
    none = pa.schema([TABLES[table].field(name) for name in columns]).empty_table()
    read = partial(_read_part, files, columns=columns, cell_ids=cell_ids)
    with ThreadPoolExecutor(READERS) as pool:
        return pa.concat_tables([none, *pool.map(read, parts)], promote_options="default")


def _read_part(
    files: Files, part: Entry, *, columns: Sequence[str], cell_ids: Collection[str] | None
) -> pa.Table:
    location = f"{files.url}/{part.uri}"
    file_system, path = files.arrow(part.uri)
    try:
        with pq.ParquetFile(path, filesystem=file_system) as file:
            check_version(file.metadata.metadata, location)
            return _rows(file, columns, cell_ids).replace_schema_metadata(None)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise StoreError(
            f"{location}: damaged or unreadable ({error}); mend the disk, or move the file out of the store: "
            "its trials are then run again"
        ) from error


def _rows(file: pq.ParquetFile, columns: Sequence[str], cell_ids: Collection[str] | None) -> pa.Table:
    if cell_ids is None:
        return file.read(columns=list(columns), use_threads=False)
    groups = _row_groups(file.metadata, cell_ids)
    rows = file.read_row_groups(groups, columns=[*{*columns, "cell_id"}], use_threads=False)
    return rows.filter(pc.is_in(rows["cell_id"], pa.array(cell_ids, pa.string()))).select(list(columns))


def _row_groups(metadata: pq.FileMetaData, cell_ids: Collection[str]) -> list[int]:
    """The row groups that may hold one of the cells, by their statistics."""
    lowest, highest = min(cell_ids, default=""), max(cell_ids, default="")
    names = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    index, found = names.index("cell_id"), []
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(index).statistics
        bounds = (statistics.min, statistics.max) if statistics and statistics.has_min_max else ("", highest)
        if bounds[0] <= highest and lowest <= bounds[1]:
            found.append(group)
    return found
