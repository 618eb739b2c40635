"""How many units and repeats a wanted difference needs, from the variances that a result store holds.

Invariant: nothing is assumed that the store does not show; where it has one checkpoint only, the spread of differences
between units is unknown, and the answer is said to be a lower bound. Exit status: 0 answered, 2 wrong settings or no
data.

    python jobs/power.py benchmark=echomind metric=quality/nisqa_mos difference=0.1
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from rich.console import Console
from rich.table import Table

from farm.observations import Seen, grouped
from farm.store import Store, StoreError
from farm.verdict import ALPHA, Spread, power, units_needed
from jobs import config
from tracking.report.loaded import load

REPEATS = (1, 2, 3, 5, 10)


def spread(rows: Sequence[Seen]) -> tuple[Spread, bool]:
    """A metric's spread, and whether the units' part of it could be measured (two checkpoints or more).

    Args:
        rows: of one metric and task, mean or rate.
    """
    by_cell = grouped(rows, "model", "checkpoint", "prompt", "condition")
    repeat = _pooled_sd(values for cell in by_cell.values() for values in _by_item(cell).values())
    units: list[float] = []
    for (_, first), (_, second) in combinations(by_cell.items(), 2):
        if _asked_alike(first[0], second[0]):
            units += _unit_variances(first, second, repeat)
    known = bool(units)
    return Spread(
        unit=float(np.sqrt(max(0.0, float(np.mean(units))))) if known else 0.0, repeat=repeat
    ), known


def _asked_alike(first: Seen, second: Seen) -> bool:
    same = ("prompt", "condition")
    return all(first.facet(f) == second.facet(f) for f in same) and first.record.arm == second.record.arm


def _by_item(rows: Iterable[Seen]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row.item_key, []).append(row.numerator)
    return found


def _pooled_sd(groups: Iterable[Sequence[float]]) -> float:
    squares, freedom = 0.0, 0
    for values in groups:
        if len(values) > 1:
            squares += float(np.var(values, ddof=1)) * (len(values) - 1)
            freedom += len(values) - 1
    return float(np.sqrt(squares / freedom)) if freedom else 0.0


def _unit_variances(first: Sequence[Seen], second: Sequence[Seen], repeat: float) -> list[float]:
    """The variance of the units' differences, less what the repeats explain of it."""
    sides = [_unit_means(rows) for rows in (first, second)]
    shared = sorted(sides[0].keys() & sides[1].keys())
    if len(shared) < 2:
        return []
    differences = [sides[1][unit][0] - sides[0][unit][0] for unit in shared]
    trials = float(np.mean([sides[0][unit][1] + sides[1][unit][1] for unit in shared])) / 2
    return [float(np.var(differences, ddof=1)) - 2 * repeat**2 / trials]


def _unit_means(rows: Iterable[Seen]) -> dict[str, tuple[float, int]]:
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row.unit, []).append(row.numerator)
    return {unit: (float(np.mean(values)), len(values)) for unit, values in found.items()}


def table(found: Spread, difference: float, cells: int, units: int) -> Table:
    """Units needed for 80 % and 95 % power, and the power with the units there are, a line a number of repeats."""
    level = ALPHA / max(1, cells)
    drawn = Table(box=None, pad_edge=False)
    for heading in ("repeats", "units for 80 %", "units for 95 %", f"power with {units} units"):
        drawn.add_column(heading, justify="right")
    for repeats in REPEATS:
        needed = [str(units_needed(found, repeats, difference, wanted, level)) for wanted in (0.8, 0.95)]
        drawn.add_row(str(repeats), *needed, f"{power(found, units, repeats, difference, level):.0%}")
    return drawn


def main(arguments: Sequence[str]) -> int:
    """Prints the table; returns the exit status."""
    if "--help" in arguments or "-h" in arguments:
        print(f"{__doc__}\n{(config.ROOT / 'conf' / 'power.yaml').read_text(encoding='utf-8')}")
        return 0
    try:
        chosen = config.settings("power", arguments)
        if not float(chosen["difference"]) > 0:
            raise ValueError(f"difference={chosen['difference']}: above 0, in the metric's unit")
        loaded = load(Store.open(str(chosen["store"]), create=False), str(chosen["benchmark"]))
        rows = [r for r in loaded.rows if r.spec.name == chosen["metric"] and r.spec.aggregate != "ratio"]
        if not rows:
            names = sorted({r.spec.name for r in loaded.rows if r.spec.aggregate != "ratio"})
            raise ValueError(f"metric={chosen['metric']}: the store has {', '.join(names) or 'no scores'}")
    except (StoreError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    found, known = spread(rows)
    console = Console()
    console.print(
        f"{chosen['metric']}: standard deviation {found.repeat:.3g} between repeats,", highlight=False
    )
    between = (
        f"{found.unit:.3g} between units' differences" if known else "unknown between units: a lower bound"
    )
    console.print(f"{between}; level {ALPHA} over {chosen['cells']} comparisons", highlight=False)
    units = len({r.unit for r in rows})
    console.print(table(found, float(chosen["difference"]), int(chosen["cells"]), units))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
