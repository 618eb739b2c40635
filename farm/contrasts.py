"""Two sides compared on what they share: one path for noise against clean, P3 against P1, human against synthetic.

Invariant: pairs are joined on everything but what is contrasted; repeats are averaged within a pair, pairs within a
unit, and units are what is resampled and flipped. What only one side has is dropped and counted. A p-value is never
smaller than the units allow (2 / 2^n), and a family of them is corrected by Holm's method.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from farm import statistics

Floats = npt.NDArray[np.float64]
EXACT_UNITS = 14
"""Up to so many units every flip of signs is tried (16,384); beyond it so many are drawn:"""
FLIPS = 20_000
SEED = 20250307


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One trial's part in a metric."""

    pair: Hashable
    """What both sides share: the script, the question, the condition ..."""
    unit: str
    numerator: float
    """The score; of a ratio (word error rate) its numerator."""
    denominator: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """How much higher the second side is than the first."""

    metric: str
    first: str
    """What the first side is called: `clean`."""
    second: str
    first_value: float | None
    second_value: float | None
    difference: float | None
    """Second less first, over the units that both have; None where they share none."""
    ci_low: float | None = None
    ci_high: float | None = None
    p: float | None = None
    """Two-sided, by flipping the sides of whole units; None below two units."""
    p_holm: float | None = None
    """Corrected for the family that it was asked in."""
    units: int = 0
    pairs: int = 0
    unpaired: int = 0
    """Pairs that only one side has: they are in neither value."""

    @property
    def floor(self) -> float:
        """The smallest p-value that so many units can give."""
        return min(1.0, 2.0 / 2**self.units) if self.units else 1.0


def contrast(
    metric: str,
    names: tuple[str, str],
    first: Iterable[Observation],
    second: Iterable[Observation],
    aggregate: Literal["mean", "ratio"] = "mean",
) -> Contrast:
    """Compares two sides, unit by unit.

    Args:
        metric: its name.
        names: of the sides.
        first: its observations; several of one pair are repeats.
        second: of the other side.
        aggregate: `mean` of numerators, or `ratio` of their sum to that of the denominators.
    """
    left, right = _by_pair(first), _by_pair(second)
    shared = sorted(left.keys() & right.keys(), key=repr)
    unpaired = len(left.keys() ^ right.keys())
    bare = Contrast(
        metric=metric,
        first=names[0],
        second=names[1],
        first_value=None,
        second_value=None,
        difference=None,
        unpaired=unpaired,
    )
    if not shared:
        return bare
    sides = _by_unit([left[key] for key in shared], [right[key] for key in shared], aggregate)
    if not (sides[:, 1].sum() > 0 and sides[:, 3].sum() > 0):
        return replace(bare, pairs=len(shared))
    low, high = _interval(sides)
    return replace(
        bare,
        first_value=float(sides[:, 0].sum() / sides[:, 1].sum()),
        second_value=float(sides[:, 2].sum() / sides[:, 3].sum()),
        difference=float(_difference(sides)),
        ci_low=low,
        ci_high=high,
        p=flip_p(sides),
        units=len(sides),
        pairs=len(shared),
    )


def weighted(sides: Floats) -> tuple[float, float, float, float | None, float | None] | None:
    """Two weighted means over the same units, where a unit may be on both sides in part.

    Args:
        sides: shape (units, 4): weighted sum and weight of the first and of the second side.

    Returns:
        First value, second value, second less first, and its interval over units; None where a side has no weight.
    """
    if not len(sides) or not (sides[:, 1].sum() > 0 and sides[:, 3].sum() > 0):
        return None
    total = sides.sum(axis=0)
    low, high = _interval(sides)
    return float(total[0] / total[1]), float(total[2] / total[3]), _difference(sides), low, high


def family(contrasts: Sequence[Contrast]) -> list[Contrast]:
    """The contrasts with their p-values corrected for one another (Holm, 1979)."""
    tested = [(index, c.p) for index, c in enumerate(contrasts) if c.p is not None]
    corrected = dict(zip([i for i, _ in tested], holm([p for _, p in tested]), strict=True))
    return [replace(c, p_holm=corrected.get(index)) for index, c in enumerate(contrasts)]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction, in the order given.

    Source: Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979).
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """False discovery rates, in the order given (Benjamini and Hochberg, 1995): for slices that are looked through."""
    order = sorted(range(len(p_values)), key=lambda index: -p_values[index])
    corrected, lowest = [0.0] * len(p_values), 1.0
    for place, index in enumerate(order):
        rank = len(p_values) - place
        lowest = min(lowest, p_values[index] * len(p_values) / rank)
        corrected[index] = lowest
    return corrected


def flip_p(sides: Floats) -> float | None:
    """Share of flips of whole units whose difference is at least as far from zero as the one that was seen.

    Args:
        sides: shape (units, 4): numerator and denominator of the first and of the second side.

    Returns:
        None for fewer than two units.
    """
    units = len(sides)
    if units < 2:
        return None
    seen = abs(_difference(sides))
    apart = np.concatenate([_differences(sides, signs) for signs in _signs(units)])
    # A tie counts as an extreme: rounding must not make a flip and its mirror differ.
    extreme = int((np.abs(apart) >= seen - 1e-9 * max(1.0, seen)).sum())
    return extreme / len(apart) if units <= EXACT_UNITS else (extreme + 1) / (len(apart) + 1)


def _signs(units: int) -> Iterable[Floats]:
    """Blocks of shape (flips, units): 1 where a unit's sides change places."""
    if max(FLIPS, 2**EXACT_UNITS) * units <= statistics.CACHED_CELLS:
        yield _all_signs(units)
        return
    generator = np.random.default_rng(SEED)
    rows = max(1, statistics.CACHED_CELLS // units)
    for start in range(0, FLIPS, rows):
        yield generator.integers(0, 2, size=(min(rows, FLIPS - start), units)).astype(np.float64)


@lru_cache(maxsize=4)
def _all_signs(units: int) -> Floats:
    """Kept, because contrasts of one family mostly have the same number of units."""
    if units <= EXACT_UNITS:
        every: Floats = ((np.arange(2**units)[:, None] >> np.arange(units)) & 1).astype(np.float64)
        return every
    return np.random.default_rng(SEED).integers(0, 2, size=(FLIPS, units)).astype(np.float64)


def _differences(sides: Floats, signs: Floats) -> Floats:
    """The difference after each flip; a flip that leaves a side without a denominator counts as extreme."""
    first, second = sides[:, :2], sides[:, 2:]
    left = first.sum(axis=0) + signs @ (second - first)
    right = second.sum(axis=0) + signs @ (first - second)
    whole = (left[:, 1] > 0) & (right[:, 1] > 0)
    apart = np.full(len(signs), np.inf)
    apart[whole] = right[whole, 0] / right[whole, 1] - left[whole, 0] / left[whole, 1]
    return apart


def _difference(sides: Floats) -> float:
    total = sides.sum(axis=0)
    return float(total[2] / total[3] - total[0] / total[1])


def _interval(sides: Floats) -> tuple[float | None, float | None]:
    """Percentile interval of the difference over resampled units."""
    units = len(sides)
    if units < 2:
        return None, None
    drawn = np.concatenate([counts @ sides for counts in statistics.resamples(units)])
    if not (np.all(drawn[:, 1] > 0) and np.all(drawn[:, 3] > 0)):
        return None, None
    differences = drawn[:, 2] / drawn[:, 3] - drawn[:, 0] / drawn[:, 1]
    edge = (1 - statistics.LEVEL) / 2
    low, high = np.quantile(differences, [edge, 1 - edge])
    return float(low), float(high)


def _by_pair(observations: Iterable[Observation]) -> dict[Hashable, tuple[str, float, float]]:
    """Pair -> unit, and the means of numerators and denominators over its repeats."""
    gathered: dict[Hashable, list[Observation]] = {}
    for observation in observations:
        gathered.setdefault(observation.pair, []).append(observation)
    return {
        pair: (
            found[0].unit,
            sum(o.numerator for o in found) / len(found),
            sum(o.denominator for o in found) / len(found),
        )
        for pair, found in gathered.items()
    }


def _by_unit(
    left: Sequence[tuple[str, float, float]], right: Sequence[tuple[str, float, float]], aggregate: str
) -> Floats:
    """Shape (units, 4). Of a mean a unit weighs the same however many pairs it has."""
    rows: dict[str, list[tuple[float, float, float, float]]] = {}
    for (unit, *first), (_, *second) in zip(left, right, strict=True):
        rows.setdefault(unit, []).append((first[0], first[1], second[0], second[1]))
    combine = np.sum if aggregate == "ratio" else np.mean
    return np.array([combine(np.array(rows[unit]), axis=0) for unit in sorted(rows)])
