"""Merging small parts into large ones, so that a long sweep's thousands of parts read like a few.

Invariant: at every moment the parts that count hold every row once. The order is: manifest (what the merged part will
replace), merged part (its appearance is the commit), removal of what it replaces, next manifest. Killed before the
commit, the manifest names a part that does not exist and is void; after it, the next compaction ends the removal.
Old parts are removed only after the part with their rows is durable, so that even two compactions at once lose nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import numpy as np
import pyarrow as pa

from farm.files import Entry, Files
from farm.parts import (
    READERS,
    Manifest,
    live_parts,
    new_part_uri,
    part_bytes,
    read_manifest,
    read_parts,
    write_manifest,
)
from farm.schema import KEYS, SCHEMA_VERSION, TABLES, VERSION_KEY
from farm.views import last_written

MERGED_BYTES = 16 * 2**20
"""Parts are merged up to this size (of Parquet); one half of it and more is left alone."""


def compact(files: Files) -> None:
    """Merges the small parts of every partition of every table; nothing to merge is no work."""
    for table in TABLES:
        _compact_table(files, table)


def _compact_table(files: Files, table: str) -> None:
    manifest = _finish(files, table, read_manifest(files, table))
    for group in _groups(live_parts(files, table)):
        manifest = _merge(files, table, group, manifest)


def _groups(parts: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Neighbours of one partition whose sizes add up to a merged part."""
    small = sorted((p for p in parts if p.size < MERGED_BYTES // 2), key=lambda p: p.uri)
    for _, partition in groupby(small, key=lambda p: p.uri.rsplit("/", 1)[0]):
        group: list[Entry] = []
        size = 0
        for part in partition:
            if size + part.size > MERGED_BYTES:
                yield from [group] * (len(group) > 1)
                group, size = [], 0
            group.append(part)
            size += part.size
        yield from [group] * (len(group) > 1)


def _merge(files: Files, table: str, parts: Sequence[Entry], before: Manifest) -> Manifest:
    rows = _sorted(table, last_written(read_parts(files, table, parts, TABLES[table].names), KEYS[table]))
    folder = parts[0].uri.rsplit("/", 1)[0]
    merged = new_part_uri(folder, int(rows["written_ns"].to_numpy().max()))
    manifest = Manifest(before.generation + 1, {merged: [part.uri for part in parts]})
    write_manifest(files, table, manifest)
    metadata = {VERSION_KEY: str(SCHEMA_VERSION)}
    files.write(merged, part_bytes(rows.replace_schema_metadata(metadata), merged=True))
    return _finish(files, table, manifest)


def _finish(files: Files, table: str, manifest: Manifest) -> Manifest:
    """Removes what a merged part that exists replaces; a void entry is forgotten."""
    if not manifest.replaced:
        return manifest
    for merged, replaced in manifest.replaced.items():
        if any(entry.uri == merged for entry in files.list(merged.rsplit("/", 1)[0])):
            with ThreadPoolExecutor(READERS) as pool:
                list(pool.map(files.remove, replaced))
    done = Manifest(manifest.generation + 1)
    write_manifest(files, table, done)
    return done


def _sorted(table: str, rows: pa.Table) -> pa.Table:
    if "cell_id" not in TABLES[table].names:
        return rows
    cells = rows["cell_id"].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
    return rows.take(np.lexsort((rows["written_ns"].to_numpy(), cells)))
