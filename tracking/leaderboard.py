"""The leaderboard: a line a cell and voice source, on the terminal, as CSV and as Markdown.

Invariant: nothing is hidden. What could not be scored says so and carries its reason as a footnote; a value that rests
on too few trials is flagged; human and synthetic voices stand on lines of their own.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from farm.metrics import COVERAGE_FLOOR, CellSummary, Metric

PLAIN_WIDTH = 200
FLAG = "!"


@dataclass(frozen=True, slots=True)
class Line:
    """One line."""

    summary: CellSummary
    headline: tuple[Metric, ...]
    """The headline metrics of each scorer of the sweep; all have a place, scored or not."""

    @property
    def unparsed(self) -> Metric | None:
        """Share of unparsed answers, where the cell has a rate."""
        return self.summary.metric("health/unparsed")


def rows(summaries: Sequence[CellSummary]) -> list[Line]:
    """The lines, in the order given, all with the same headline metrics."""
    scorers = [scorer for summary in summaries for scorer in summary.record.scorers]
    names = list(dict.fromkeys(name for scorer in scorers for name in scorer.headlines))
    missing = [Metric(name=name, value=None, note="not part of this cell's sweep") for name in names]
    return [Line(s, tuple(s.metric(m.name) or m for m in missing)) for s in summaries]


def render(lines: Sequence[Line], console: Console | None = None) -> None:
    """Prints the leaderboard; plain, without colour, where the output is no terminal."""
    console = console or Console()
    if not console.is_terminal:
        console = Console(file=console.file, width=PLAIN_WIDTH, no_color=True, highlight=False)
    notes = _Notes()
    table = Table(box=None, pad_edge=False)
    for name in _facet_names(lines):
        table.add_column(name, no_wrap=True)
    for name in (*_metric_names(lines), "done", "failed", *_unparsed_name(lines)):
        table.add_column(name, justify="right")
    for line in lines:
        table.add_row(*map(Text, _cells(line, lines, notes)))
    console.print(table)
    for text in notes.texts():
        console.print(Text(text), soft_wrap=True)


def markdown(lines: Sequence[Line]) -> str:
    """The leaderboard as a Markdown table with footnotes."""
    notes = _Notes()
    names = [*_facet_names(lines), *_metric_names(lines), "done", "failed", *_unparsed_name(lines)]
    texts = [_cells(line, lines, notes) for line in lines]
    table = [names, ["---"] * len(names), *texts]
    drawn = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table]
    return "\n".join([*drawn, "", *(f"{text}  " for text in notes.texts())]) + "\n"


def csv_text(lines: Sequence[Line]) -> str:
    """The leaderboard as CSV: a value, its interval, coverage and note in columns of their own."""
    out = io.StringIO()
    writer = csv.writer(out)
    parts = ("", "_ci_low", "_ci_high", "_coverage", "_note")
    names = [f"{name}{part}" for name in _metric_names(lines) for part in parts]
    writer.writerow(["task", *FACETS, "voice", "cell_id", *names, "done", "planned", "failed", "unparsed"])
    for line in lines:
        r, s = line.summary.record, line.summary
        metrics = [
            v for m in line.headline for v in (m.value, m.ci_low, m.ci_high, round(m.coverage, 4), m.note)
        ]
        unparsed = line.unparsed.value if line.unparsed else None
        facets = [r.task, r.model, r.prompt, r.condition, _arm(line), s.voice_source, r.cell_id]
        writer.writerow([*facets, *metrics, s.done, s.planned, s.failed, unparsed])
    return out.getvalue()


FACETS = ("model", "prompt", "condition", "arm")


class _Notes:
    """Footnotes, numbered as they are met."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._flagged = False

    def mark(self, note: str) -> str:
        return f" [{self._numbers.setdefault(note, len(self._numbers) + 1)}]" if note else ""

    def flag(self) -> str:
        self._flagged = True
        return FLAG

    def texts(self) -> list[str]:
        floor = f"{FLAG} rests on less than {COVERAGE_FLOOR:.0%} of the planned trials: no verdict"
        return [*(f"[{n}] {note}" for note, n in self._numbers.items()), *([floor] if self._flagged else [])]


def _cells(line: Line, lines: Sequence[Line], notes: _Notes) -> list[str]:
    s = line.summary
    facets = {
        "task": s.record.task,
        "model": s.record.model,
        "prompt": s.record.prompt,
        "condition": s.record.condition,
        "arm": _arm(line),
        "voice": s.voice_source or "-",
    }
    failures = s.metric("health/failed")
    failed = str(s.failed) + notes.mark(f"failed: {failures.note}" if failures and s.failed else "")
    unparsed = [_share(line.unparsed)] if _unparsed_name(lines) else []
    metrics = [_value(m, notes) for m in line.headline]
    return [*(facets[n] for n in _facet_names(lines)), *metrics, f"{s.done}/{s.planned}", failed, *unparsed]


def _value(metric: Metric, notes: _Notes) -> str:
    mark = notes.mark(f"{metric.name}: {metric.note}" if metric.note else "")
    if metric.value is None:
        return (metric.note.split(":", 1)[0] if metric.note.startswith("unavailable") else "-") + mark
    interval = ""
    if metric.ci_low is not None and metric.ci_high is not None:
        interval = f" ± {(metric.ci_high - metric.ci_low) / 2:.2f}"
    flag = "" if metric.firm else f" ({metric.coverage:.0%}){notes.flag()}"
    return f"{metric.value:.2f}{interval}{flag}{mark}"


def _share(metric: Metric | None) -> str:
    return "-" if metric is None or metric.value is None else f"{metric.value:.0%}"


def _arm(line: Line) -> str:
    return " ".join(f"{name}={value}" for name, value in line.summary.record.arm.items())


def _facet_names(lines: Sequence[Line]) -> list[str]:
    """Model, prompt and condition; task, arm and voice only where they tell lines apart."""
    several_tasks = len({line.summary.record.task for line in lines}) > 1
    any_arm = any(line.summary.record.arm for line in lines)
    any_voice = any(line.summary.voice_source for line in lines)
    names = [
        ("task", several_tasks),
        *((n, True) for n in FACETS[:3]),
        ("arm", any_arm),
        ("voice", any_voice),
    ]
    return [name for name, wanted in names if wanted]


def _metric_names(lines: Sequence[Line]) -> list[str]:
    return [m.name for m in lines[0].headline] if lines else []


def _unparsed_name(lines: Sequence[Line]) -> list[str]:
    return ["unparsed"] if any(line.unparsed for line in lines) else []
