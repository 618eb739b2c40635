"""Two checkpoints compared on one suite: contrasts of every metric with a margin, failures, canaries.

Invariant: cells are matched on task, prompt, condition and arm; only speech that a cell's headline is over counts,
human and synthetic voices apart; the suite's hash covers all that can change a number but the checkpoint itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from farm import ids
from farm.contrasts import Contrast, Observation, contrast
from farm.metrics import (
    HEADLINE_STYLE,
    REPLY_COLUMNS,
    SCORE_COLUMNS,
    VOICE_SOURCE,
    VOICE_STYLE,
    scores_by_trial,
)
from farm.observations import Seen, grouped, seen
from farm.plan import Plan, Sweep
from farm.records import CellRecord, cell_record
from farm.store import Store
from farm.types import Cell, MetricSpec
from farm.verdict import Compared, Kind, Verdict, drifted, verdicts, wrongs

COLUMNS = [*REPLY_COLUMNS, "pair_id", "replicate"]
SLICED_BY = ("attribute", "question_type")
MIN_SLICE_UNITS = 6


def suite_hash(sweep: Sweep, plan: Plan) -> str:
    """Digest of everything that decides what is measured, but the checkpoint.

    Items with their gold, prompts' texts, conditions, scorers with their weights, generation parameters, versions,
    repeats.
    """
    cells = sorted(
        ids.canonical(
            [_matched(cell), cell.template, ids.condition_identity(cell.condition), _settings(cell)]
        ).hex()
        for cell in plan.cells
    )
    asked = sorted(a.digest.hex() for cell in plan.cells for a in plan.asked(cell))
    gold = sorted(ids.digest([item.key, item.gold]) for items in plan.items.values() for item in items)
    scorers = sorted([s.name, s.version, s.weights] for s in sweep.scorers)
    return ids.digest([cells, asked, gold, scorers, plan.repeats])


def _settings(cell: Cell) -> Any:
    """The model's settings and versions without what its checkpoints are."""

    def bare(tree: Any) -> Any:
        if not isinstance(tree, Mapping):
            return tree
        return {key: bare(value) for key, value in tree.items() if key != "checkpoint"}

    return [bare(cell.model.identity), dict(cell.model.versions)]


def _matched(cell: Cell) -> tuple[str, ...]:
    arms = tuple(f"{k}={v}" for k, v in sorted(cell.arm.items()))
    return (cell.task, cell.prompt.name, cell.condition.name, *arms)


def compare(
    store: Store, sweep: Sweep, baseline: Plan, candidate: Plan, margins: Mapping[str, float]
) -> list[Verdict]:
    """Verdicts on every metric with a margin, and on failures and unparsed answers, cell by cell.

    Args:
        store: holds both.
        sweep: whose scorers are compared.
        baseline: its plan.
        candidate: its plan, of the same suite.
        margins: metric -> margin, in place of the scorer's own.
    """
    compared: list[Compared] = []
    health: list[Verdict] = []
    for before, after in _pairs(baseline, candidate):
        left, right = (
            _Side.read(store, plan, cell, sweep) for plan, cell in ((baseline, before), (candidate, after))
        )
        compared += _metrics(left, right, margins)
        health += _health(left, right)
    return [*verdicts(compared), *health]


def canary(
    store: Store,
    sweep: Sweep,
    first: Plan,
    again: Plan,
    margins: Mapping[str, float],
    kind: Kind = "environment changed",
) -> list[Verdict]:
    """What came out otherwise when the same checkpoint answered the same questions again; empty where nothing did."""
    found = []
    for before, after in _pairs(first, again):
        left, right = (
            _Side.read(store, plan, cell, sweep) for plan, cell in ((first, before), (again, after))
        )
        for c in _metrics(left, right, margins):
            found.append(drifted(c.cell, c.metric, c.contrast, c.margin, kind))
    return [verdict for verdict in found if verdict is not None]


def _pairs(first: Plan, second: Plan) -> Iterator[tuple[Cell, Cell]]:
    others = {_matched(cell): cell for cell in second.cells}
    for cell in first.cells:
        if (match := others.get(_matched(cell))) is not None:
            yield cell, match


class _Side:
    """One cell of one checkpoint, as the store has it."""

    def __init__(
        self, record: CellRecord, replies: Sequence[Mapping[str, Any]], rows: list[Seen], unparsed: set[str]
    ):
        self.record, self.replies, self.rows, self.unparsed = record, replies, rows, unparsed

    @classmethod
    def read(cls, store: Store, plan: Plan, cell: Cell, sweep: Sweep) -> _Side:
        """The cell's rows of this plan's trials."""
        wanted = set(plan.trial_ids(cell))
        replies = store.replies(cell_ids=[cell.cell_id], columns=COLUMNS)
        scores = store.scores(cell_ids=[cell.cell_id], columns=SCORE_COLUMNS).to_pylist()
        replies = replies.filter(pc.is_in(replies["trial_id"], value_set=_array(wanted)))
        listed = [row for row in replies.to_pylist() if _headline(row)]
        record = cell_record(plan, cell, sweep.scorers)
        by_trial = scores_by_trial(record, listed, scores)
        unparsed = {trial for (trial, _), score in by_trial.items() if score["status"] == "unparsed"}
        return cls(record, listed, list(seen(record, listed, scores)), unparsed)

    def margins(self, own: Mapping[str, float]) -> Iterator[tuple[MetricSpec, float]]:
        """The metrics that are tested, with their margins."""
        for scorer in self.record.scorers:
            for spec in scorer.metrics:
                margin = own.get(spec.name, spec.margin)
                if margin is not None and spec.better != "neither":
                    yield spec, float(margin)


def _array(values: set[str]) -> Any:
    import pyarrow as pa

    return pa.array(sorted(values), pa.string())


def _headline(row: Mapping[str, Any]) -> bool:
    return bool(dict(row["factors"] or ()).get(VOICE_STYLE, HEADLINE_STYLE) == HEADLINE_STYLE)


def _metrics(left: _Side, right: _Side, margins: Mapping[str, float]) -> Iterator[Compared]:
    for spec, margin in left.margins(margins):
        sides = [[r for r in side.rows if r.spec.name == spec.name] for side in (left, right)]
        sources = sorted({r.facet(VOICE_SOURCE) for rows in sides for r in rows})
        for source in sources:
            mine = [[r for r in rows if r.facet(VOICE_SOURCE) == source] for rows in sides]
            planned = sum(dict(row["factors"] or ()).get(VOICE_SOURCE, "") == source for row in right.replies)
            yield Compared(
                cell=_name(left.record, source),
                metric=spec.name,
                better=spec.better,  # type: ignore[arg-type]
                margin=margin,
                contrast=_contrast(spec, mine[0], mine[1]),
                coverage=len(mine[1]) / planned if planned else 0.0,
            )


def _contrast(spec: MetricSpec, first: Sequence[Seen], second: Sequence[Seen]) -> Contrast:
    sides = [
        [
            Observation(pair=r.item_key, unit=r.unit, numerator=r.numerator, denominator=r.denominator)
            for r in rows
        ]
        for rows in (first, second)
    ]
    of_sums = spec.aggregate == "ratio"
    return contrast(spec.name, ("baseline", "candidate"), sides[0], sides[1], "ratio" if of_sums else "mean")


def _name(record: CellRecord, source: str = "") -> str:
    arms = (f"{k}={v}" for k, v in sorted(record.arm.items()))
    return " · ".join(filter(None, [record.task, record.prompt, record.condition, *arms, source]))


def _health(left: _Side, right: _Side) -> Iterator[Verdict]:
    """Failures, and unparsed answers where the cell has a rate, unit by unit."""
    name = _name(left.record)
    failed = [_wrong_units(side, lambda row, side: row["failure_kind"] is not None) for side in (left, right)]
    yield wrongs(name, "health/failed", _aligned(*failed))
    if any(spec.aggregate == "rate" for s in left.record.scorers for spec in s.metrics):
        unparsed = [
            _wrong_units(side, lambda row, side: row["trial_id"] in side.unparsed) for side in (left, right)
        ]
        yield wrongs(name, "health/unparsed", _aligned(*unparsed))


def _wrong_units(side: _Side, wrong: Any) -> dict[str, bool]:
    """Unit -> whether any of its trials went wrong."""
    units: dict[str, bool] = {}
    for row in side.replies:
        units[row["unit"]] = units.get(row["unit"], False) or wrong(row, side)
    return units


def _aligned(first: Mapping[str, bool], second: Mapping[str, bool]) -> list[tuple[bool, bool]]:
    return [(first[unit], second[unit]) for unit in sorted(first.keys() & second.keys())]


def slices(store: Store, sweep: Sweep, baseline: Plan, candidate: Plan) -> list[dict[str, Any]]:
    """Attributes and question types on which the checkpoints differ: where to look, no verdict.

    Those with a false discovery rate below 5 % (Benjamini and Hochberg).
    """
    from farm.contrasts import benjamini_hochberg

    found = []
    for before, after in _pairs(baseline, candidate):
        left, right = (
            _Side.read(store, plan, cell, sweep) for plan, cell in ((baseline, before), (candidate, after))
        )
        for factor in SLICED_BY:
            first, second = grouped(left.rows, "metric", factor), grouped(right.rows, "metric", factor)
            for key in sorted(first.keys() & second.keys()):
                c = _contrast(first[key][0].spec, first[key], second[key])
                if key[1] and c.units >= MIN_SLICE_UNITS and c.p is not None:
                    found.append((c.p, {"cell": _name(left.record), "metric": key[0], factor: key[1], "units": c.units,
                                        "difference": c.difference}))  # fmt: skip
    rates = benjamini_hochberg([p for p, _ in found])
    return [
        {**told, "false_discovery_rate": q} for q, (_, told) in zip(rates, found, strict=True) if q < 0.05
    ]
