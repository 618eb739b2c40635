"""The leaderboard: a table a task, a line a cell and voice, on the terminal, as CSV and as Markdown.

Invariant: nothing is hidden. What could not be scored says so and carries its reason as a footnote; a value that rests
on too few trials is flagged; human and synthetic voices, and speech with and without its cue, stand on lines of their
own.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from farm.metrics import COVERAGE_FLOOR, HEADLINE_STYLE, CellSummary, Metric

PLAIN_WIDTH = 200
FLAG = "!"


@dataclass(frozen=True, slots=True)
class Line:
    """One line."""

    summary: CellSummary
    headline: tuple[Metric, ...]
    """The headline metrics of each scorer of its task; all have a place, scored or not."""

    @property
    def unparsed(self) -> Metric | None:
        """Share of unparsed answers, where the cell has a rate."""
        return self.summary.metric("health/unparsed")

    @property
    def task(self) -> str:
        """Whose replies it sums up."""
        return self.summary.record.task


def rows(summaries: Sequence[CellSummary]) -> list[Line]:
    """The lines, in the order given, those of one task all with the same headline metrics."""
    names: dict[str, list[str]] = {}
    for record in (summary.record for summary in summaries):
        headlines = [name for scorer in record.scorers for name in scorer.headlines]
        names[record.task] = list(dict.fromkeys([*names.get(record.task, []), *headlines]))
    return [
        Line(s, tuple(s.metric(name) or _missing(name) for name in names[s.record.task])) for s in summaries
    ]


def _missing(name: str) -> Metric:
    return Metric(name=name, value=None, note="not part of this cell's sweep")


def render(lines: Sequence[Line], console: Console | None = None) -> None:
    """Prints the leaderboard, a table a task; plain, without colour, where the output is no terminal."""
    console = console or Console()
    if not console.is_terminal:
        console = Console(file=console.file, width=PLAIN_WIDTH, no_color=True, highlight=False)
    notes = _Notes()
    for group in _by_task(lines):
        if title := _title(group, lines):
            console.print(Text(title, style="bold"))
        table = Table(box=None, pad_edge=False)
        for name in _facet_names(group):
            table.add_column(name, no_wrap=True)
        for name in (*_metric_names(group), "done", "failed", *_unparsed_name(group)):
            table.add_column(name, justify="right")
        for line in group:
            table.add_row(*map(Text, _cells(line, group, notes)))
        console.print(table)
    for text in notes.texts():
        console.print(Text(text), soft_wrap=True)


def markdown(lines: Sequence[Line]) -> str:
    """The leaderboard as Markdown, a table a task, with footnotes."""
    notes = _Notes()
    drawn: list[str] = []
    for group in _by_task(lines):
        names = [*_facet_names(group), *_metric_names(group), "done", "failed", *_unparsed_name(group)]
        table = [names, ["---"] * len(names), *(_cells(line, group, notes) for line in group)]
        title = _title(group, lines)
        drawn += [f"**{title}**", ""] if title else []
        drawn += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table]
        drawn.append("")
    return "\n".join([*drawn, *(f"{text}  " for text in notes.texts())]) + "\n"


def csv_text(lines: Sequence[Line]) -> str:
    """The leaderboard as CSV: a value, its interval, coverage and note in columns of their own."""
    out = io.StringIO()
    writer = csv.writer(out)
    parts = ("", "_ci_low", "_ci_high", "_coverage", "_note")
    metrics = list(dict.fromkeys(m.name for line in lines for m in line.headline))
    names = [f"{name}{part}" for name in metrics for part in parts]
    voice = ["voice", "voice_style"]
    writer.writerow(["task", *FACETS, *voice, "cell_id", *names, "done", "planned", "failed", "unparsed"])
    for line in lines:
        r, s = line.summary.record, line.summary
        have = {m.name: m for m in line.headline}
        values = [value for name in metrics for value in _numbers(have.get(name))]
        unparsed = line.unparsed.value if line.unparsed else None
        facets = [
            r.task,
            r.model,
            r.prompt,
            r.condition,
            _arm(line),
            s.voice_source,
            s.voice_style,
            r.cell_id,
        ]
        writer.writerow([*facets, *values, s.done, s.planned, s.failed, unparsed])
    return out.getvalue()


def _numbers(metric: Metric | None) -> list[float | str | None]:
    if metric is None:
        return [None] * 5
    return [metric.value, metric.ci_low, metric.ci_high, round(metric.coverage, 4), metric.note]


def _by_task(lines: Sequence[Line]) -> list[list[Line]]:
    """The lines of each task; one group without lines where there are none, so that a table is drawn."""
    tasks = list(dict.fromkeys(line.task for line in lines))
    return [[line for line in lines if line.task == task] for task in tasks] or [[]]


def _title(group: Sequence[Line], lines: Sequence[Line]) -> str | None:
    return group[0].task if len({line.task for line in lines}) > 1 else None


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
        "model": s.record.model,
        "prompt": s.record.prompt,
        "condition": s.record.condition,
        "arm": _arm(line),
        "voice": s.voice_source or "-",
        "style": s.voice_style or "-",
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
    """Model, prompt and condition; arm, voice and its style only where they say something."""
    names = [
        *((name, True) for name in FACETS[:3]),
        ("arm", any(line.summary.record.arm for line in lines)),
        ("voice", any(line.summary.voice_source for line in lines)),
        ("style", any(line.summary.voice_style not in ("", HEADLINE_STYLE) for line in lines)),
    ]
    return [name for name, wanted in names if wanted]


def _metric_names(lines: Sequence[Line]) -> list[str]:
    return [m.name for m in lines[0].headline] if lines else []


def _unparsed_name(lines: Sequence[Line]) -> list[str]:
    return ["unparsed"] if any(line.unparsed for line in lines) else []
