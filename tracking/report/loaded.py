"""A store's cells of one benchmark, read once for all sections of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow.compute as pc

from farm.metrics import REPLY_COLUMNS, SCORE_COLUMNS, CellSummary, summarise
from farm.observations import Seen, seen
from farm.records import CellRecord
from tracking.projection import Results, load_record

REPORTED = [*REPLY_COLUMNS, "pair_id", "model", "task"]


@dataclass(frozen=True)
class Loaded:
    """What a report is made from."""

    benchmark: str
    records: tuple[CellRecord, ...]
    summaries: tuple[CellSummary, ...]
    rows: tuple[Seen, ...]
    replies: Mapping[str, Mapping[str, Any]]
    """Trial id -> its reply row."""

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Every model, in order."""
        return tuple(sorted({record.model for record in self.records}))

    def metric_rows(self, **facets: str) -> list[Seen]:
        """Observations of any metric at some levels of facets."""
        return [r for r in self.rows if all(r.facet(f) == v for f, v in facets.items())]

    def metric(self, name: str, **facets: str) -> list[Seen]:
        """Observations of one metric, and of some levels of facets (`task="echomind.asr"`)."""
        return [
            r for r in self.rows if r.spec.name == name and all(r.facet(f) == v for f, v in facets.items())
        ]


def load(store: Results, benchmark: str) -> Loaded:
    """Every cell of a benchmark that has replies.

    Raises:
        ValueError: the store has none.
    """
    replies = store.replies(benchmark=benchmark, columns=[*REPORTED])
    if not replies.num_rows:
        raise ValueError(f"the store has no replies of {benchmark}")
    scores = store.scores(benchmark=benchmark, columns=SCORE_COLUMNS)
    cell_ids = sorted(pc.unique(replies["cell_id"]).to_pylist())
    records = sorted(
        (load_record(store, cell_id) for cell_id in cell_ids), key=lambda r: (r.task, r.run_name)
    )
    summaries: list[CellSummary] = []
    rows: list[Seen] = []
    by_trial: dict[str, Mapping[str, Any]] = {}
    for record in records:
        own = replies.filter(pc.equal(replies["cell_id"], record.cell_id))
        judged = scores.filter(pc.equal(scores["cell_id"], record.cell_id))
        summaries += summarise(record, own, judged)
        listed: Sequence[Mapping[str, Any]] = own.to_pylist()
        rows += seen(record, listed, judged.to_pylist())
        by_trial |= {row["trial_id"]: row for row in listed}
    return Loaded(
        benchmark=benchmark,
        records=tuple(records),
        summaries=tuple(summaries),
        rows=tuple(rows),
        replies=by_trial,
    )
