"""Lists what failed in a result store: by kind, with the first lines of each, the worker's log and how to run it again.

Invariant: reads only; a failure that a later attempt mended is not listed.

    python jobs/failures.py [--store store] [--kind model_error] [--limit 5]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, get_args

import pyarrow.compute as pc
from rich.console import Console

from farm.store import Store
from farm.types import FailureKind

COLUMNS = [
    "trial_id",
    "sweep_id",
    "attempt",
    "model",
    "task",
    "item_key",
    "prompt",
    "condition",
    "repeat",
    "worker",
    "failure_kind",
    "failure_message",
]
MESSAGE_LINES = 4


def failures(store: Store) -> list[dict[str, Any]]:
    """The store's failed trials (their last attempt), most frequent kind first."""
    table = store.replies(columns=COLUMNS)
    rows: list[dict[str, Any]] = table.filter(pc.is_valid(table["failure_kind"])).to_pylist()
    counts = {row["failure_kind"]: 0 for row in rows}
    for row in rows:
        counts[row["failure_kind"]] += 1
    return sorted(
        rows, key=lambda r: (-counts[r["failure_kind"]], r["failure_kind"], r["model"], r["item_key"])
    )


def commands(store: Store, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The commands of the sweeps that these trials failed in; the same command runs what failed once more."""
    records = [f"sweeps/{sweep_id}.json" for sweep_id in dict.fromkeys(row["sweep_id"] for row in rows)]
    there = set(store.uris("sweeps"))
    return [json.loads(store.get(uri))["command"] for uri in records if uri in there]


def show(rows: Iterable[Mapping[str, Any]], console: Console, limit: int) -> None:
    """Prints the failures by kind."""
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_kind.setdefault(row["failure_kind"], []).append(row)
    for kind, group in by_kind.items():
        console.print(f"{kind}: {len(group)}", highlight=False)
        for row in group[:limit]:
            _show_one(row, console)
        if len(group) > limit:
            console.print(
                f"  ... and {len(group) - limit} more (--limit {len(group)} shows them)", highlight=False
            )


def _show_one(row: Mapping[str, Any], console: Console) -> None:
    where = " · ".join(
        [row["model"], row["prompt"], row["condition"], row["item_key"], f"repeat {row['repeat']}"]
    )
    _plain(console, f"  {where} (trial {row['trial_id']}, attempt {row['attempt']})")
    for line in (row["failure_message"] or "").splitlines()[:MESSAGE_LINES]:
        _plain(console, f"    {line}")


def _plain(console: Console, text: str) -> None:
    """Prints a line whole, so that paths can be copied and searched."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def main() -> int:
    """The command line; exits 0 whether or not there are failures, 2 on a wrong store or kind."""
    kinds = get_args(FailureKind)
    parser = argparse.ArgumentParser(description="Lists what failed in a result store, by kind.")
    parser.add_argument("--store", default="store", help="a folder or an fsspec URL")
    parser.add_argument("--kind", choices=kinds, help="only this kind")
    parser.add_argument("--limit", type=int, default=5, help="failures shown of each kind")
    arguments = parser.parse_args()
    try:
        store = Store.open(arguments.store, create=False)
        rows = failures(store)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    rows = [row for row in rows if arguments.kind in (None, row["failure_kind"])]
    console = Console()
    show(rows, console, arguments.limit)
    console.print(f"{len(rows)} failed trials" if rows else "nothing failed", highlight=False)
    for command in commands(store, rows):
        _plain(console, f"run them again: {command}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
