"""Which rows are durable already: only those are counted, shown and scored.

Invariant: a row is handed on exactly once, after the flush that made it durable, in the order of appending within its
partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from farm.store import GROUP_ROWS, Store

Row = Mapping[str, Any]
_Key = tuple[str, str, str]
"""Table and partition: the store commits a partition's rows together."""


class Keeper:
    """Appends rows to the store and says which have become durable."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[_Key, list[Row]] = {}

    def replies(self, rows: Sequence[Row]) -> None:
        """Takes reply rows."""
        self._store.append_replies(rows)
        self._note("replies", "model", rows)

    def scores(self, rows: Sequence[Row]) -> None:
        """Takes score rows."""
        self._store.append_scores(rows)
        self._note("scores", "scorer", rows)

    def _note(self, table: str, part: str, rows: Sequence[Row]) -> None:
        for row in rows:
            self._waiting.setdefault((table, row["benchmark"], row[part]), []).append(row)

    def flush(self, *, force: bool = False) -> tuple[list[Row], list[Row]]:
        """Group commit.

        Returns:
            Reply rows and score rows that have become durable.

        Raises:
            StoreError: the store cannot be written; nothing that was not durable is counted.
        """
        written = self._store.flush(force)
        if not written:
            return [], []
        keys = [
            key for key, rows in self._waiting.items() if not self._store.buffered or len(rows) >= GROUP_ROWS
        ]
        if any(table == "scores" for table, _, _ in keys):
            keys += [key for key in self._waiting if key[0] == "replies" and key not in keys]
        if sum(len(self._waiting[key]) for key in keys) != written:
            # The store committed otherwise than by its documented rule: then all of it, and there is no doubt.
            self._store.flush(force=True)
            keys = list(self._waiting)
        durable: dict[str, list[Row]] = {"replies": [], "scores": []}
        for key in keys:
            durable[key[0]] += self._waiting.pop(key)
        return durable["replies"], durable["scores"]
