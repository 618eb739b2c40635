"""Whether a checkpoint is worse than its baseline: verdicts on contrasts, on failures, and over all.

Invariant: a verdict is drawn from an interval over units against a margin that the metric declares, never from a mean
alone; what the data cannot tell is `inconclusive` and says what would do; dropped items cannot raise a mean, since
failures and unparsed answers are tested on their own and low coverage allows no verdict but `worse`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from farm.contrasts import Contrast, holm
from farm.metrics import COVERAGE_FLOOR

Kind = Literal["better", "no difference", "worse", "inconclusive", "environment changed", "judge changed"]
ALPHA = 0.05
EXIT_STATUS: Mapping[Kind, int] = {
    "worse": 4,
    "environment changed": 6,
    "judge changed": 6,
    "inconclusive": 5,
    "better": 0,
    "no difference": 0,
}
"""A retest's exit status; 1, 2 and 3 are a sweep's."""
GRAVEST: tuple[Kind, ...] = (
    "worse",
    "environment changed",
    "judge changed",
    "inconclusive",
    "better",
    "no difference",
)
"""Of several verdicts the first of these that occurs is the verdict over all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is to be said of one metric of one cell."""

    cell: str
    """`echomind.asr · p1 · clean`."""
    metric: str
    kind: Kind
    reason: str
    contrast: Contrast | None = None
    """Candidate (second) against baseline (first)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One metric of one cell on both checkpoints."""

    cell: str
    metric: str
    better: Literal["higher", "lower"]
    margin: float
    """How much worse is still no difference, in the metric's unit."""
    contrast: Contrast
    coverage: float
    """The candidate's share of planned trials that were scored."""


def verdicts(compared: Sequence[Compared]) -> list[Verdict]:
    """A verdict for each, their p-values corrected for one another (Holm)."""
    tested = [c.contrast.p for c in compared if c.contrast.p is not None]
    corrected = iter(holm(tested))
    found = [(c, next(corrected) if c.contrast.p is not None else None) for c in compared]
    return [_verdict(c, p, max(1, len(tested))) for c, p in found]


def _verdict(c: Compared, p: float | None, family: int) -> Verdict:
    def said(kind: Kind, reason: str) -> Verdict:
        return Verdict(cell=c.cell, metric=c.metric, kind=kind, reason=reason, contrast=c.contrast)

    x = c.contrast
    if x.difference is None or p is None or x.ci_low is None or x.ci_high is None:
        return said("inconclusive", f"{x.units} units in common; an interval needs at least 2")
    if x.floor * family > ALPHA:
        needed = units_for_significance(family)
        return said(
            "inconclusive",
            f"{x.units} units cannot reach p < {ALPHA} among {family} comparisons: {needed} would",
        )
    low, high = (x.ci_low, x.ci_high) if c.better == "higher" else (-x.ci_high, -x.ci_low)
    words = f"{_signed(x.difference)} [{_signed(x.ci_low)}, {_signed(x.ci_high)}], margin {c.margin:g}"
    if high < -c.margin and p < ALPHA:
        return said("worse", f"{words}, p {p:.3g}")
    if c.coverage < COVERAGE_FLOOR:
        return said("inconclusive", f"only {c.coverage:.0%} of the planned trials were scored; {words}")
    if low > c.margin and p < ALPHA:
        return said("better", f"{words}, p {p:.3g}")
    if low >= -c.margin and high <= c.margin:
        return said("no difference", words)
    return said("inconclusive", f"the interval crosses the margin: {words}; more units or repeats would tell")


def _signed(value: float) -> str:
    return f"{value:+.3g}"


def units_for_significance(family: int, alpha: float = ALPHA) -> int:
    """How many units a sign-flip test needs to reach significance in a family: 2 / 2^n * family <= alpha."""
    return math.ceil(math.log2(2 * family / alpha))


# --- failures and unparsed answers ---------------------------------------------------------------------------------


def mcnemar(pairs: Iterable[tuple[bool, bool]]) -> tuple[int, int, float]:
    """Exact McNemar test of paired outcomes.

    Args:
        pairs: (went wrong on the baseline, went wrong on the candidate), one a unit.

    Returns:
        Units where only the candidate went wrong, where only the baseline did, and the two-sided p-value.

    Source: McNemar, Psychometrika 12 (1947), in its exact binomial form.
    """
    listed = list(pairs)
    new = sum(candidate and not baseline for baseline, candidate in listed)
    mended = sum(baseline and not candidate for baseline, candidate in listed)
    n = new + mended
    if n == 0:
        return 0, 0, 1.0
    tail = sum(math.comb(n, k) for k in range(min(new, mended) + 1)) / 2**n
    return new, mended, min(1.0, 2 * tail)


def wrongs(cell: str, name: str, pairs: Iterable[tuple[bool, bool]]) -> Verdict:
    """The verdict on failures or unparsed answers of one cell.

    Args:
        cell: its name.
        name: `health/failed` or `health/unparsed`.
        pairs: see `mcnemar`.
    """
    new, mended, p = mcnemar(pairs)
    words = f"{new} units newly wrong, {mended} mended, p {p:.3g}"
    if p < ALPHA:
        return Verdict(cell=cell, metric=name, kind="worse" if new > mended else "better", reason=words)
    return Verdict(cell=cell, metric=name, kind="no difference", reason=words)


def overall(found: Sequence[Verdict]) -> Kind:
    """The gravest; `inconclusive` where nothing was compared."""
    kinds = {verdict.kind for verdict in found}
    return next((kind for kind in GRAVEST if kind in kinds), "inconclusive")


def drifted(cell: str, metric: str, contrast: Contrast, margin: float, kind: Kind) -> Verdict | None:
    """The verdict on a canary: the same checkpoint (or the same replies) again, which must come out the same.

    Args:
        cell: its name.
        metric: what was compared.
        contrast: again (second) against before (first), for the same trials.
        margin: of the metric.
        kind: `environment changed` or `judge changed`.

    Returns:
        None unless the whole interval lies beyond the margin: sampled replies differ a little each time.
    """
    x = contrast
    low = x.ci_low if x.ci_low is not None else x.difference
    high = x.ci_high if x.ci_high is not None else x.difference
    if x.difference is None or low is None or high is None or (low <= margin and high >= -margin):
        return None
    return Verdict(
        cell=cell, metric=metric, kind=kind, reason=f"the same again gave {_signed(x.difference)}", contrast=x
    )


# --- power ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Where a metric's differences between two checkpoints vary, as standard deviations."""

    unit: float
    """Of the true difference, from unit to unit."""
    repeat: float
    """Of one trial about its unit's mean."""


def power(spread: Spread, units: int, repeats: int, difference: float, alpha: float = ALPHA) -> float:
    """Chance to find a difference by a paired test over units (normal approximation).

    Args:
        spread: of the metric.
        units: compared.
        repeats: of each trial on both sides.
        difference: that is really there.
        alpha: two-sided level, after correction.
    """
    from statistics import NormalDist

    error = math.sqrt((spread.unit**2 + 2 * spread.repeat**2 / repeats) / units)
    if error == 0:
        return 1.0 if difference else alpha
    normal = NormalDist()
    edge = normal.inv_cdf(1 - alpha / 2)
    shift = abs(difference) / error
    return normal.cdf(shift - edge) + normal.cdf(-shift - edge)


def units_needed(
    spread: Spread, repeats: int, difference: float, wanted: float = 0.8, alpha: float = ALPHA
) -> int:
    """The fewest units with which a difference is found with the wanted power."""
    low, high = 2, 4
    while power(spread, high, repeats, difference, alpha) < wanted:
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if power(spread, middle, repeats, difference, alpha) < wanted:
            low = middle + 1
        else:
            high = middle
    return low
