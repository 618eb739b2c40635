"""The deduplicated views: of everything ever appended, the rows that count.

Invariant: a view depends on the rows' keys and on `written_ns`, not on how parts hold them: a row that two parts hold
counts once, and a compaction changes no view. Rows come in the order in which they were written.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from farm.plan import Progress


def last_written(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Of rows that share a key the last written one, all in the order of writing."""
    return rows.take(_last([_codes(rows[name]) for name in key], rows["written_ns"].to_numpy()))


def last_attempts(rows: pa.Table) -> pa.Table:
    """Of every trial the turns of its last attempt; of two rows with one key the last written."""
    trial, attempt = _codes(rows["trial_id"]), rows["attempt"].to_numpy()
    highest = np.zeros(int(trial.max(initial=-1)) + 1, dtype=attempt.dtype)
    np.maximum.at(highest, trial, attempt)
    rows = rows.filter(pa.array(attempt == highest[trial]))
    return last_written(rows, ("trial_id", "turn"))


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Equal values, equal numbers; null counts as a value."""
    if pa.types.is_integer(column.type) and not column.null_count:
        return np.asarray(column.to_numpy(), dtype=np.int64)
    codes = column.combine_chunks().dictionary_encode().indices.fill_null(-1)
    return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64)


def _last(key: Sequence[npt.NDArray[np.int64]], written: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    order = np.lexsort((written, *key))
    last = np.ones(len(order), dtype=bool)
    if len(order):
        last[:-1] = np.any([codes[order][1:] != codes[order][:-1] for codes in key], axis=0)
    kept = order[last]
    in_order: npt.NDArray[np.int64] = kept[np.argsort(written[kept], kind="stable")]
    return in_order


def progress(rows: pa.Table, *, count_done: bool) -> Progress:
    """Which trials have a reply, and how often the others were tried.

    Args:
        rows: trial_id, attempt, turn, failure_kind and written_ns of every row of every part.
        count_done: count the attempts of trials with a reply too.
    """
    failed_once = pc.unique(rows["trial_id"].filter(pc.is_valid(rows["failure_kind"])))
    last = last_attempts(rows.filter(pc.is_in(rows["trial_id"], failed_once)))
    failed = set(last["trial_id"].filter(pc.is_valid(last["failure_kind"])).to_pylist())
    counted = rows.select(["trial_id", "attempt"]) if count_done else last.select(["trial_id", "attempt"])
    highest = counted.group_by("trial_id").aggregate([("attempt", "max")])
    attempts = zip(highest["trial_id"].to_pylist(), highest["attempt_max"].to_pylist(), strict=True)
    return Progress(
        done=set(pc.unique(rows["trial_id"]).to_pylist()) - failed,
        attempts={trial: attempt for trial, attempt in attempts if count_done or trial in failed},
    )


_QUERY = """\
SELECT * FROM read_parquet('{store}/replies/*/*/part-*.parquet', hive_partitioning = false, union_by_name = true)
QUALIFY attempt = max(attempt) OVER (PARTITION BY trial_id)
    AND row_number() OVER (PARTITION BY trial_id, attempt, turn ORDER BY written_ns DESC) = 1"""


def reply_duckdb_query(store_path: str) -> str:
    """The one DuckDB query that gives what `Store.replies()` gives (in any order), also while parts are merged.

    It need not read the manifest: a row that is in a part and in the merged part that replaces it has one `written_ns`
    in both, and counts once.

    Args:
        store_path: the store's folder or URL.
    """
    return _QUERY.format(store=glob.escape(store_path).replace("'", "''"))
