"""Writes the report of a result store: one HTML page with tables (CSV, Markdown) and sounds beside it.

Invariant: reads the store alone; the same store gives the same page. Exit status: 0 written, 2 no such store or
benchmark.

    python jobs/report.py benchmark=echomind store=store out=outputs/report
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow.compute as pc

from farm.store import Store, StoreError
from jobs import config
from tracking.report import echomind, general
from tracking.report.content import Section
from tracking.report.loaded import Loaded, load
from tracking.report.page import write

OF_A_BENCHMARK: Mapping[str, Callable[[Loaded], Iterable[Section]]] = {"echomind": echomind.sections}
"""Benchmark -> the sections that it alone has; they come first."""


def benchmarks(store: Store, wanted: str | None) -> list[str]:
    """The benchmarks to report on.

    Raises:
        ValueError: the store is empty, or has not the one that is wanted.
    """
    there = sorted(pc.unique(store.replies(columns=["benchmark"])["benchmark"]).to_pylist())
    if not there:
        raise ValueError(f"{store.url} holds no replies yet: python jobs/sweep.py")
    if wanted is not None and wanted not in there:
        raise ValueError(f"benchmark={wanted}: the store has {', '.join(there)}")
    return [wanted] if wanted else there


def sections(store: Store, names: list[str]) -> Iterator[Section]:
    """All sections, benchmark by benchmark."""
    for name in names:
        loaded = load(store, name)
        if name in OF_A_BENCHMARK:
            yield from OF_A_BENCHMARK[name](loaded)
        yield from general.sections(loaded)


def main(arguments: Sequence[str]) -> int:
    """Reads the store, writes the page, prints where it is; returns the exit status."""
    if "--help" in arguments or "-h" in arguments:
        print(f"{__doc__}\n{(config.ROOT / 'conf' / 'report.yaml').read_text(encoding='utf-8')}")
        return 0
    try:
        chosen = config.settings("report", arguments)
        store = Store.open(str(chosen["store"]), create=False)
        names = benchmarks(store, chosen["benchmark"])
        made = list(sections(store, names))
    except (StoreError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    subtitle = f"From the result store {store.url}; benchmarks: {', '.join(names)}."
    folder = Path(str(chosen["out"])).expanduser()
    path = write(
        folder,
        f"SpeechFarm: {', '.join(names)}",
        subtitle,
        made,
        store.get,
        embed_audio=chosen["embed_audio"],
    )
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
