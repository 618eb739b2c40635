"""Plots as SVG that a page can hold: drawn by matplotlib, recoloured to the page's own text colour.

Invariant: the same values give the same bytes; no plot depends on a display.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracking.report.content import Figure, Number

SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "speechfarm",
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Tol's bright scheme: told apart by colour-blind readers."""


def bars(title: str, groups: Sequence[str], series: Mapping[str, Sequence[Number]], unit: str) -> Figure:
    """Grouped bars with their intervals.

    Args:
        title: of the figure.
        groups: along the x axis.
        series: name -> one value a group.
        unit: of the y axis.
    """

    def draw(axes: Any) -> None:
        width = 0.8 / max(1, len(series))
        for index, (name, numbers) in enumerate(series.items()):
            places = [g + index * width for g, n in enumerate(numbers) if n.value is not None]
            shown = [n for n in numbers if n.value is not None]
            values = [n.value for n in shown]
            below = [n.value - n.ci_low if n.ci_low is not None else 0.0 for n in shown]  # type: ignore[operator]
            above = [n.ci_high - n.value if n.ci_high is not None else 0.0 for n in shown]  # type: ignore[operator]
            errors = [[max(0.0, b) for b in below], [max(0.0, a) for a in above]]
            axes.bar(
                places, values, width, yerr=errors, label=name, color=COLOURS[index % len(COLOURS)], capsize=2
            )
        axes.set_xticks([g + 0.4 - width / 2 for g in range(len(groups))], groups, rotation=20, ha="right")
        axes.set_ylabel(unit)
        if len(series) > 1:
            axes.legend(frameon=False, fontsize=8)

    alt = "; ".join(
        f"{name}: " + ", ".join(f"{g} {n}" for g, n in zip(groups, numbers, strict=True))
        for name, numbers in series.items()
    )
    return _figure(title, alt, draw, (max(4.0, 1.2 + 0.5 * len(groups) * max(1, len(series))), 3.2))


def scatter(title: str, points: Mapping[str, tuple[float, float]], axes_names: tuple[str, str]) -> Figure:
    """Named points."""

    def draw(axes: Any) -> None:
        for index, (name, (x, y)) in enumerate(points.items()):
            axes.scatter([x], [y], color=COLOURS[index % len(COLOURS)])
            axes.annotate(name, (x, y), fontsize=7, xytext=(3, 3), textcoords="offset points")
        axes.set_xlabel(axes_names[0])
        axes.set_ylabel(axes_names[1])

    alt = "; ".join(f"{name}: {x:.2f}, {y:.2f}" for name, (x, y) in points.items())
    return _figure(title, alt, draw, (4.5, 3.4))


def heat_map(
    title: str, rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float | None]]
) -> Figure:
    """A matrix of values, each written in its cell; empty where there is none."""

    def draw(axes: Any) -> None:
        import numpy as np

        matrix = np.array([[np.nan if v is None else v for v in row] for row in values], dtype=float)
        axes.imshow(matrix, aspect="auto", cmap="viridis")
        axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right", fontsize=7)
        axes.set_yticks(range(len(rows)), rows, fontsize=7)
        middle = (np.nanmin(matrix) + np.nanmax(matrix)) / 2 if np.isfinite(matrix).any() else 0.0
        for r, row in enumerate(values):
            for c, value in enumerate(row):
                if value is not None:
                    ink = "#ffffff" if value < middle else "#000001"
                    axes.text(c, r, f"{value:.2f}", ha="center", va="center", fontsize=6, color=ink)

    alt = "; ".join(
        f"{r}: "
        + ", ".join(f"{c} {'-' if v is None else f'{v:.2f}'}" for c, v in zip(columns, row, strict=True))
        for r, row in zip(rows, values, strict=True)
    )
    return _figure(title, alt, draw, (2.2 + 0.5 * len(columns), 1.6 + 0.3 * len(rows)))


def _figure(title: str, alt: str, draw: Callable[[Any], None], size_inches: tuple[float, float]) -> Figure:
    import matplotlib

    with matplotlib.rc_context(SETTINGS):
        from matplotlib.figure import Figure as Drawing

        drawing = Drawing(figsize=size_inches, layout="constrained")
        draw(drawing.subplots())
        file = io.StringIO()
        drawing.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    return Figure(title=title, svg=re.sub(r"#000000|(?<=stroke: )black", "currentColor", svg), alt=alt)
