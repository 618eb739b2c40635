"""Sections that any benchmark has: leaderboard, contrasts, breakdowns, what failed, what to listen to.

Invariant: every comparison is a contrast over units with its interval and a p-value corrected within its table; human
and synthetic voices are never pooled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from farm.contrasts import Contrast, family
from farm.metrics import COVERAGE_FLOOR, CellSummary, Metric
from farm.observations import Seen, between_cells, between_items, grouped, levels
from farm.statistics import mean, ratio
from tracking.leaderboard import rows as leaderboard_lines
from tracking.report.content import Number, Sample, Section, Sound, Table
from tracking.report.figures import heat_map
from tracking.report.loaded import Loaded

SIGNIFICANT = 0.05
WORST = 6
"""Samples shown of each metric."""


def sections(loaded: Loaded) -> Iterator[Section]:
    """All of them, in the order of a page."""
    yield leaderboard(loaded)
    yield conditions(loaded)
    yield contrasts(loaded, "prompt", "Prompts")
    yield contrasts(loaded, "condition", "Audio conditions")
    for arm in sorted({f"arm.{name}" for record in loaded.records for name in record.arm}):
        yield contrasts(loaded, arm, f"Arm {arm.removeprefix('arm.')}")
    yield contrasts(loaded, "model", "Models on the same questions")
    yield voices(loaded)
    yield breakdown(loaded)
    yield worst(loaded)
    yield health(loaded)


# --- leaderboard ---------------------------------------------------------------------------------------------------


def leaderboard(loaded: Loaded) -> Section:
    """A line a cell and voice source, task by task."""
    tables = []
    for task in sorted({record.task for record in loaded.records}):
        lines = leaderboard_lines([s for s in loaded.summaries if s.record.task == task])
        names = [m.name for m in lines[0].headline]
        rows = tuple(
            (
                *_who(line.summary),
                *(number(m) for m in line.headline),
                f"{line.summary.done}/{line.summary.planned}",
                Number(value=float(line.summary.failed), digits=0),
            )
            for line in lines
        )
        columns = ("model", "prompt", "condition", "arm", "voice", *names, "done", "failed")
        tables.append(Table(name=f"leaderboard_{_file(task)}", title=task, columns=columns, rows=rows))
    note = (
        "Values with 95 % intervals over units (scripts, not recordings). ! rests on less than "
        f"{COVERAGE_FLOOR:.0%} of the planned trials. Rates count failed and unparsed answers as not correct."
    )
    return Section(title="Leaderboard", text=note, tables=tuple(tables))


def number(metric: Metric, digits: int = 2) -> Number:
    """A metric as a table shows it."""
    flag = "" if metric.value is None or metric.firm else "!"
    return Number(
        value=metric.value,
        ci_low=metric.ci_low,
        ci_high=metric.ci_high,
        digits=digits,
        flag=flag,
        note=metric.note,
    )


def _who(summary: CellSummary) -> tuple[str, str, str, str, str]:
    record = summary.record
    arm = " ".join(f"{name}={value}" for name, value in record.arm.items())
    return record.model, record.prompt, record.condition, arm, summary.voice_source or "-"


def _file(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


# --- contrasts -----------------------------------------------------------------------------------------------------


def contrasts(loaded: Loaded, facet: str, title: str) -> Section:
    """Every two levels of a cell's facet, within task and model."""
    found = list(_between_cells(loaded.rows, facet))
    if not found:
        return Section(title=title)
    return Section(title=title, tables=(contrast_table(_file(f"contrast_{facet}"), title, found),))


def _between_cells(rows: Iterable[Seen], facet: str) -> Iterator[tuple[tuple[str, ...], Contrast]]:
    within = ("task", "metric") if facet == "model" else ("task", "model", "metric")
    for key, group in grouped(rows, *within).items():
        for first, second in _to_compare(group, facet):
            found = between_cells(group, facet, first, second, (first or "default", second or "default"))
            if found.difference is not None:
                yield key, found


def _to_compare(group: Sequence[Seen], facet: str) -> list[tuple[str, str]]:
    """Conditions and arms against what they change; prompts and models each with each."""
    there = sorted({row.facet(facet) for row in group})
    if facet == "condition" and "clean" in there:
        return [("clean", level) for level in there if level != "clean"]
    if facet.startswith("arm."):
        return [("", level) for level in there if level] if "" in there else []
    return [(a, b) for i, a in enumerate(there) for b in there[i + 1 :]]


def contrast_table(name: str, title: str, found: Sequence[tuple[tuple[str, ...], Contrast]]) -> Table:
    """Contrasts of one family: their p-values corrected together."""
    corrected = family([c for _, c in found])
    keys = max(len(key) for key, _ in found)
    heads = ("task", "model")[: keys - 1]
    rows = tuple(
        (
            *key[:-1],
            c.metric,
            c.first,
            c.second,
            Number(value=c.first_value),
            Number(value=c.second_value),
            Number(value=c.difference, ci_low=c.ci_low, ci_high=c.ci_high, digits=3, flag=_star(c)),
            Number(value=c.p_holm, digits=3, note="" if c.p_holm is not None else "fewer than two units"),
            c.units,
            c.unpaired,
        )
        for (key, _), c in zip(found, corrected, strict=True)
    )
    columns = (
        *heads,
        "metric",
        "first",
        "second",
        "first value",
        "second value",
        "second - first",
        "p (Holm)",
    )
    note = (
        "Paired on the same unit under all else; sign flips of whole units; * below "
        f"{SIGNIFICANT} after Holm's correction over the table. `unpaired`: what only one side has, left out."
    )
    return Table(name=name, title=title, columns=(*columns, "units", "unpaired"), rows=rows, note=note)


def _star(c: Contrast) -> str:
    return "*" if c.p_holm is not None and c.p_holm < SIGNIFICANT else ""


def voices(loaded: Loaded) -> Section:
    """Human against synthetic recordings of the same script."""
    found = []
    for key, group in grouped(loaded.rows, "task", "model", "metric").items():
        if {"human", "synthetic"} <= set(levels(group, "voice_source")):
            c = between_items(group, "voice_source", "synthetic", "human")
            if c.difference is not None:
                found.append((key, c))
    title = "Human against synthetic voices, same scripts"
    tables = (contrast_table("contrast_voice_source", title, found),) if found else ()
    return Section(title=title, tables=tables)


# --- maps and breakdowns -------------------------------------------------------------------------------------------


def conditions(loaded: Loaded) -> Section:
    """Model by condition, a map for each headline metric."""
    figures = []
    names = sorted({record.condition for record in loaded.records}, key=lambda name: (name != "clean", name))
    if len(names) < 2:
        return Section(title="Models by condition")
    for (task, metric), group in grouped(loaded.rows, "task", "metric").items():
        values = [[pooled([r for r in group if _is(r, m, c)]).value for c in names] for m in loaded.models]
        if any(v is not None for row in values for v in row):
            figures.append(heat_map(f"{task}: {metric}", loaded.models, names, values))
    return Section(title="Models by condition", figures=tuple(figures))


def _is(row: Seen, model: str, condition: str) -> bool:
    return row.record.model == model and row.record.condition == condition


def pooled(rows: Sequence[Seen], digits: int = 2) -> Number:
    """A metric over some observations, with its interval over units."""
    if not rows:
        return Number(value=None)
    if rows[0].spec.aggregate == "ratio":
        found = ratio([r.numerator for r in rows], [r.denominator for r in rows], [r.unit for r in rows])
    else:
        found = mean([r.numerator for r in rows], [r.item_key for r in rows], [r.unit for r in rows])
    if found is None:
        return Number(value=None, note="every denominator is 0")
    return Number(value=found.value, ci_low=found.ci_low, ci_high=found.ci_high, digits=digits)


BROKEN_DOWN = ("coarse_dimension", "fine_dimension", "attribute", "topic", "voice_style", "question_type", "setting",
               "subject", "group")  # fmt: skip
"""Factors that tables break down by, where items have them."""


def breakdown(loaded: Loaded) -> Section:
    """Every metric by every factor with several levels, a table a factor."""
    tables = []
    for factor in BROKEN_DOWN:
        if len(levels(loaded.rows, factor)) < 2:
            continue
        groups = grouped(
            (r for r in loaded.rows if r.facet(factor)), "task", "model", "metric", "voice_source", factor
        )
        rows = tuple((*key, pooled(group), len({r.unit for r in group})) for key, group in groups.items())
        columns = ("task", "model", "metric", "voice source", factor, "value", "units")
        tables.append(Table(name=f"by_{factor}", title=f"By {factor}", columns=columns, rows=rows))
    note = "Over all prompts, conditions and arms of the store that share the row; intervals over units."
    return Section(title="Breakdowns", text=note if tables else "", tables=tuple(tables))


# --- samples and failures ------------------------------------------------------------------------------------------


def worst(loaded: Loaded) -> Section:
    """The worst replies of each model by each scorer's first metric."""
    samples = []
    for (model, metric), group in grouped(loaded.rows, "model", "metric").items():
        first = {s.metrics[0].name for r in loaded.records for s in r.scorers}
        if metric not in first or group[0].spec.aggregate == "rate":
            continue
        sign = 1 if group[0].spec.better == "higher" else -1
        scored = [(r.value, r) for r in group if r.value is not None]
        for value, row in sorted(scored, key=lambda pair: (sign * pair[0], pair[1].trial_id))[:WORST]:
            samples.append(sample(loaded, row, f"{model}: {metric} {value:.2f}"))
    return Section(title="Worst replies", samples=tuple(samples))


def sample(loaded: Loaded, row: Seen, title: str) -> Sample:
    """One trial."""
    reply = loaded.replies[row.trial_id]
    facts = (
        ("item", row.item_key),
        ("prompt", row.record.prompt),
        ("condition", row.record.condition),
        *(row.factors.items()),
        ("trial", row.trial_id),
    )
    sounds = (Sound(label="reply", uri=reply["speech_uri"]),) if reply["speech_uri"] else ()
    return Sample(title=title, facts=tuple(facts), text=reply["text"] or "(no text)", sounds=sounds)


def health(loaded: Loaded) -> Section:
    """What failed, by kind; what could not be scored, with the command that brings it; speed."""
    failed = Counter(
        (row["model"], row["task"], row["failure_kind"])
        for row in loaded.replies.values()
        if row["failure_kind"]
    )
    failures = Table(
        name="failures",
        title="Failed trials",
        columns=("model", "task", "kind", "trials"),
        rows=tuple((*key, count) for key, count in sorted(failed.items())),
        note="python jobs/failures.py lists them; the same sweep again retries them.",
    )
    notes = Counter(
        (m.name, m.note)
        for s in loaded.summaries
        for m in s.metrics
        if m.value is None and m.note and "/" in m.name
    )
    missing = Table(
        name="not_scored",
        title="What has no value, and why",
        columns=("metric", "reason", "cells"),
        rows=tuple((*key, count) for key, count in sorted(notes.items())),
    )
    speed = Table(
        name="speed",
        title="Speed",
        columns=(
            "model",
            "task",
            "prompt",
            "condition",
            "trials/s of work",
            "p50 s",
            "p95 s",
            "real-time factor",
        ),
        rows=tuple(_speed(s) for s in loaded.summaries if s.metric("speed/throughput")),
        note="Seconds of the model's own batches; waiting and loading are outside.",
    )
    return Section(title="Health and speed", tables=tuple(t for t in (failures, missing, speed) if t.rows))


def _speed(summary: CellSummary) -> tuple[str | Number, ...]:
    names = ("speed/throughput", "speed/latency_p50_s", "speed/latency_p95_s", "speed/rtf")
    found = [summary.metric(name) for name in names]
    model, prompt, condition, *_ = _who(summary)
    return (
        model,
        summary.record.task,
        prompt,
        condition,
        *(number(m) if m else Number(value=None) for m in found),
    )
