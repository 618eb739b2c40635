"""A store's scores as observations that can be sliced and contrasted: one a trial and metric.

Invariant: what counts is what `farm.metrics` counts: a rate's failed or unparsed trial is 0, a mean's or ratio's is
left out; what a metric does not apply to is no observation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from farm.contrasts import Contrast, Observation, contrast
from farm.metrics import UNJUDGED, Row, scores_by_trial
from farm.records import CellRecord
from farm.types import MetricSpec

ARM = "arm."
"""Facets `arm.cue`, `arm.shots`: what else a cell varies on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One trial under one metric."""

    record: CellRecord
    spec: MetricSpec
    trial_id: str
    item_key: str
    unit: str
    pair_id: str
    repeat: int
    factors: Mapping[str, str]
    numerator: float
    denominator: float

    @property
    def value(self) -> float | None:
        """None over a zero denominator."""
        return self.numerator / self.denominator if self.denominator else None

    def facet(self, name: str) -> str:
        """What the trial is under a name: of its cell (model, task, prompt, condition, arm.cue), else of its item."""
        if name.startswith(ARM):
            return self.record.arm.get(name.removeprefix(ARM), "")
        if name in CELL_FACETS:
            return str(getattr(self.record, name))
        return self.factors.get(name, "")


CELL_FACETS = ("model", "checkpoint", "task", "prompt", "condition")


def seen(record: CellRecord, replies: Sequence[Row], scores: Sequence[Row]) -> Iterator[Seen]:
    """Every observation of one cell.

    Args:
        record: the cell's record.
        replies: its rows of the store's replies (last attempts).
        scores: its rows of the store's scores.
    """
    by_trial = scores_by_trial(record, replies, scores)
    specs = [spec for scorer in record.scorers for spec in scorer.metrics]
    for reply in replies:
        factors = dict(reply["factors"] or ())
        for spec in specs:
            counted = _counted(spec, reply, by_trial.get((reply["trial_id"], spec.name)))
            if counted is not None:
                yield Seen(
                    record=record,
                    spec=spec,
                    trial_id=reply["trial_id"],
                    item_key=reply["item_key"],
                    unit=reply["unit"],
                    pair_id=reply["pair_id"],
                    repeat=reply["repeat"],
                    factors=factors,
                    numerator=counted[0],
                    denominator=counted[1],
                )


def _counted(spec: MetricSpec, reply: Row, score: Row | None) -> tuple[float, float] | None:
    if spec.aggregate == "bleu" or (score is not None and score["status"] == "not_applicable"):
        # Corpus BLEU is no sum over trials.
        return None
    ok = reply["failure_kind"] is None and score is not None and score["status"] == "ok"
    if spec.aggregate == "rate":
        if ok and score is not None:
            return float(score["value"]), 1.0
        undecided = reply["failure_kind"] is None and (score is None or score["status"] in UNJUDGED)
        return None if undecided else (0.0, 1.0)
    if not ok or score is None:
        return None
    if spec.aggregate == "ratio":
        return float(score["numerator"]), float(score["denominator"])
    return float(score["value"]), 1.0


def between_cells(
    rows: Iterable[Seen], facet: str, first: str, second: str, names: tuple[str, str] | None = None
) -> Contrast:
    """Two levels of a cell's facet (prompt p3 against p1), the same question under all else.

    Args:
        rows: of one metric; the facets that are not contrasted are part of the pair.
        facet: `prompt`, `condition`, `model`, `arm.cue`.
        first: one level.
        second: the other.
        names: of the sides, where the levels' own say too little.
    """
    fixed = [name for name in CELL_FACETS if name not in (facet, "checkpoint")]
    return _contrast(
        rows, facet, (first, second), names, lambda row: (_facets(row, fixed, facet), row.item_key)
    )


def between_items(
    rows: Iterable[Seen], factor: str, first: str, second: str, names: tuple[str, str] | None = None
) -> Contrast:
    """Two levels of an item's factor (human against synthetic), the same pair of items under all else."""
    return _contrast(
        rows,
        factor,
        (first, second),
        names,
        lambda row: (
            _facets(row, CELL_FACETS, ""),
            row.pair_id,
            tuple(sorted((k, v) for k, v in row.factors.items() if k != factor)),
        ),
    )


def _facets(row: Seen, fixed: Iterable[str], but: str) -> tuple[Hashable, ...]:
    arms = sorted((k, v) for k, v in row.record.arm.items() if f"{ARM}{k}" != but)
    return (*(row.facet(name) for name in fixed), tuple(arms))


def _contrast(
    rows: Iterable[Seen],
    facet: str,
    levels: tuple[str, str],
    names: tuple[str, str] | None,
    pair: Callable[[Seen], Hashable],
) -> Contrast:
    chosen = list(rows)
    metrics = {row.spec.name for row in chosen}
    assert len(metrics) <= 1, f"one metric at a time, not {metrics}"
    sides = [
        [
            Observation(pair=pair(r), unit=r.unit, numerator=r.numerator, denominator=r.denominator)
            for r in chosen
            if r.facet(facet) == level
        ]
        for level in levels
    ]
    of_sums = bool(chosen) and chosen[0].spec.aggregate == "ratio"
    name = next(iter(metrics), "")
    return contrast(name, names or levels, sides[0], sides[1], "ratio" if of_sums else "mean")


def levels(rows: Iterable[Seen], facet: str) -> list[str]:
    """The levels of a facet that occur, sorted; what has none is left out."""
    return sorted({level for row in rows if (level := row.facet(facet))})


def pairs_of_levels(rows: Sequence[Seen], facet: str) -> list[tuple[str, str]]:
    """Every two levels, in order."""
    return list(combinations(levels(rows, facet), 2))


def grouped(rows: Iterable[Seen], *facets: str) -> dict[tuple[str, ...], list[Seen]]:
    """Rows by the values of some facets; `metric` is one too."""
    groups: dict[tuple[str, ...], list[Seen]] = {}
    for row in rows:
        key = tuple(row.spec.name if name == "metric" else row.facet(name) for name in facets)
        groups.setdefault(key, []).append(row)
    return dict(sorted(groups.items()))
