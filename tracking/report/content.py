"""What a report is made of: sections of text, tables, figures and samples.

Invariant: values stay numbers until they are drawn; a cell without a value says why.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A value as a table shows it."""

    value: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    digits: int = 2
    flag: str = ""
    """A mark beside it: `!` rests on too little, `*` significant."""
    note: str = ""
    """Why there is no value, or what to know of it: shown on hover and as a footnote."""

    @property
    def short(self) -> str:
        """For a page, where the note is a hint: what stands before its colon says enough."""
        if self.value is None:
            return self.note.partition(":")[0] if self.note.startswith("unavailable") else "-"
        return str(self)

    def __str__(self) -> str:
        if self.value is None:
            return "-" + (f" ({self.note})" if self.note else "")
        text = f"{self.value:.{self.digits}f}"
        if self.ci_low is not None and self.ci_high is not None:
            text += f" [{self.ci_low:.{self.digits}f}, {self.ci_high:.{self.digits}f}]"
        return text + (f" {self.flag}" if self.flag else "")


Cell: TypeAlias = str | int | Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table."""

    name: str
    """Of its files: `leaderboard`."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    """Of `Cell`s."""
    note: str = ""

    def csv(self) -> str:
        """With a value's interval and note in columns of their own."""
        numeric = [any(isinstance(row[i], Number) for row in self.rows) for i in range(len(self.columns))]
        out = io.StringIO()
        writer = csv.writer(out)
        parts = ("", " low", " high", " note")
        writer.writerow(
            [f"{c}{p}" for c, n in zip(self.columns, numeric, strict=True) for p in (parts if n else ("",))]
        )
        for row in self.rows:
            writer.writerow([v for cell, n in zip(row, numeric, strict=True) for v in _flat(cell, n)])
        return out.getvalue()

    def markdown(self) -> str:
        """As a Markdown table."""
        drawn = [self.columns, ("---",) * len(self.columns), *([str(c) for c in row] for row in self.rows)]
        lines = [
            "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in row) + " |" for row in drawn
        ]
        return "\n".join([f"### {self.title}", "", *lines, "", *([self.note, ""] if self.note else [])])


def _flat(cell: Cell, numeric: bool) -> Sequence[object]:
    if not numeric:
        return (cell,)
    if not isinstance(cell, Number):
        return (cell, None, None, None)
    return (cell.value, cell.ci_low, cell.ci_high, cell.note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One plot."""

    title: str
    svg: str
    """Without a header, its lines in `currentColor`, so that it reads in the dark."""
    alt: str
    """What it shows, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """Something to listen to."""

    label: str
    uri: str
    """In the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One trial to look at and listen to."""

    title: str
    facts: tuple[tuple[str, str], ...]
    text: str
    sounds: tuple[Sound, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section."""

    title: str
    text: str = ""
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    samples: tuple[Sample, ...] = field(default=())

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.tables or self.figures or self.samples or self.text)
