"""The columns of the result store's tables, and the version that every Parquet part carries.

Invariant: a part is written with exactly one of these schemas and names its version in its metadata; a part of another
version, or of none, is refused by name and never read as if it fitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

SCHEMA_VERSION = 1
"""Raised when a column changes its name, type or meaning; a new nullable column does not raise it."""

VERSION_KEY = b"speechfarm_schema_version"

_TEXT_MAP = pa.map_(pa.string(), pa.string())
_EVENT = pa.struct(
    [
        ("t_s", pa.float64()),
        ("clock", pa.string()),
        ("actor", pa.string()),
        ("kind", pa.string()),
        ("data", pa.string()),
    ]
)

REPLIES = pa.schema(
    [
        ("trial_id", pa.string()),
        ("attempt", pa.int32()),
        ("turn", pa.int32()),
        ("sweep_id", pa.string()),
        ("cell_id", pa.string()),
        ("checkpoint", pa.string()),
        ("model", pa.string()),
        ("benchmark", pa.string()),
        ("task", pa.string()),
        ("item_key", pa.string()),
        ("unit", pa.string()),
        ("pair_id", pa.string()),
        ("factors", _TEXT_MAP),
        ("prompt", pa.string()),
        ("condition", pa.string()),
        ("condition_drawn", _TEXT_MAP),
        ("condition_seed", pa.int64()),
        ("sampling_seed", pa.int64()),
        ("arm", _TEXT_MAP),
        ("repeat", pa.int32()),
        ("replicate", pa.string()),
        ("text", pa.string()),
        ("speech_uri", pa.string()),
        ("heard_seconds", pa.float64()),
        ("truncated", pa.bool_()),
        ("speech_seconds", pa.float64()),
        ("events", pa.list_(_EVENT)),
        ("tokens_in", pa.int64()),
        ("tokens_out", pa.int64()),
        ("seconds", pa.float64()),
        ("batch_size", pa.int32()),
        ("worker", pa.string()),
        ("started_at", pa.string()),
        ("environment", pa.string()),
        ("failure_kind", pa.string()),
        ("failure_message", pa.string()),
        ("written_ns", pa.int64()),
    ]
)
"""One row a turn of an attempt of a trial. `written_ns` is the store's own: it orders all rows ever appended."""

SCORES = pa.schema(
    [
        ("score_id", pa.string()),
        ("trial_id", pa.string()),
        ("attempt", pa.int32()),
        ("turn", pa.int32()),
        ("cell_id", pa.string()),
        ("benchmark", pa.string()),
        ("scorer", pa.string()),
        ("scorer_version", pa.string()),
        ("rater", pa.string()),
        ("rater_kind", pa.string()),
        ("name", pa.string()),
        ("value", pa.float64()),
        ("label", pa.string()),
        ("numerator", pa.float64()),
        ("denominator", pa.float64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("written_ns", pa.int64()),
    ]
)
"""One row a score."""

GOLD = pa.schema(
    [
        ("benchmark", pa.string()),
        ("task", pa.string()),
        ("item_key", pa.string()),
        ("annotator", pa.string()),
        ("annotation_version", pa.string()),
        ("gold_digest", pa.string()),
        ("gold", pa.string()),
        ("written_ns", pa.int64()),
    ]
)
"""One row an item's annotation; `gold` is JSON."""

TABLES: Mapping[str, pa.Schema] = {"replies": REPLIES, "scores": SCORES, "gold": GOLD}

KEYS: Mapping[str, tuple[str, ...]] = {
    "replies": ("trial_id", "attempt", "turn"),
    "scores": ("score_id",),
    "gold": ("benchmark", "task", "item_key", "annotator", "annotation_version"),
}
"""What makes two rows the same row: of those the last written counts."""

PARTITIONS: Mapping[str, tuple[str, ...]] = {
    "replies": ("benchmark", "model"),
    "scores": ("benchmark", "scorer"),
    "gold": ("benchmark",),
}
"""The columns in a part's path, in order. They are in the part as well."""

_REQUIRED = {name: frozenset({*KEYS[name], *PARTITIONS[name]}) for name in TABLES}
_ALLOWED = {name: frozenset(schema.names) - {"written_ns"} for name, schema in TABLES.items()}
_FLOATS = {name: [f.name for f in schema if f.type == pa.float64()] for name, schema in TABLES.items()}


def check_row(table: str, row: Mapping[str, Any]) -> None:
    """Refuses a row that a later flush could not write, while its sender can still be named.

    Raises:
        ValueError: unknown columns, a key or partition column that is absent, a float that is not finite.
    """
    if not row.keys() <= _ALLOWED[table]:
        unknown = sorted(row.keys() - _ALLOWED[table])
        raise ValueError(f"{table}: unknown columns {unknown}; there are {sorted(_ALLOWED[table])}")
    for name in _REQUIRED[table]:
        if row.get(name) in (None, ""):
            raise ValueError(f"{table}: a row without {name}; it needs {sorted(_REQUIRED[table])}")
    for name in _FLOATS[table]:
        value = row.get(name)
        if value is not None and not math.isfinite(value):
            raise ValueError(
                f"{table}: {name} is {value}; a value that is not finite is a status with a reason"
            )


def to_table(table: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as an Arrow table of the current version; absent columns are null.

    Raises:
        ValueError: a value does not fit its column.
    """
    schema = TABLES[table].with_metadata({VERSION_KEY: str(SCHEMA_VERSION)})
    try:
        return _columns(rows, schema)
    except UnicodeEncodeError:
        # A model's text may hold lone surrogates, which no UTF-8 file can: they become "?".
        return _columns([_encodable(row) for row in rows], schema)


def _columns(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    columns = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        try:
            columns.append(pa.array(values, field.type))
        except UnicodeEncodeError:
            raise
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"column {field.name} ({field.type}): {error}") from error
    return pa.Table.from_arrays(columns, schema=schema)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [_encodable(item) for item in value]
    return value


def check_version(metadata: Mapping[bytes, bytes] | None, where: str) -> None:
    """Refuses a part, or a store, of another schema version.

    Raises:
        ValueError: names the file, its version, ours, and what to do.
    """
    found = (metadata or {}).get(VERSION_KEY, b"").decode()
    if found == str(SCHEMA_VERSION):
        return
    ours = f"this SpeechFarm reads version {SCHEMA_VERSION}"
    if not found:
        raise ValueError(
            f"{where}: carries no SpeechFarm schema version ({ours}); move the file out of the store"
        )
    if found.isdecimal() and int(found) < SCHEMA_VERSION:
        raise ValueError(
            f"{where}: has schema version {found}, {ours}; read it with the SpeechFarm that wrote it, "
            "or start a new store"
        )
    raise ValueError(f"{where}: has schema version {found}, {ours}; update SpeechFarm to read this store")
