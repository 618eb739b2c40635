"""How a cell and a sweep look in MLflow: names, tags, params, metrics and artifacts of their runs.

Invariant: one flat run a cell, in the experiment of its benchmark, found again by its tag `cell_id`; a sweep's summary
run is linked to its cells by the tag `sweep_id` alone (children nested under it would hide from the UI's charts).
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from farm.metrics import CellSummary, Metric, named
from farm.records import CellRecord
from tracking import leaderboard, saved_view
from tracking.mlflow_writer import LONGEST_TAG, RUNNING, logged_table
from tracking.spool import RunUpdate

TABLE_ROWS = 500
"""Rows of the table that the UI shows; all rows are in items.parquet."""
WORST = "worst"
"""The artifact folder of the speech samples."""
Rows = Sequence[Mapping[str, Any]]


def cell_begun(record: CellRecord, prefix: str) -> RunUpdate:
    """A cell of a sweep that has begun."""
    return RunUpdate(
        key=f"begun-{record.cell_id}",
        experiment=f"{prefix}/{record.benchmark}",
        identity={"kind": "cell", "cell_id": record.cell_id},
        name=record.run_name,
        tags={**_tags(record), "status": "running"},
        params=_params(record),
    )


def cell_finished(
    record: CellRecord, metrics: Sequence[Metric], rows: Rows, prefix: str
) -> tuple[RunUpdate, dict[str, bytes]]:
    """A cell whose trials have run, or as many as there are; `rows` is its item table, worst first."""
    status = _status(record, rows)
    update = RunUpdate(
        key=f"cell-{record.cell_id}",
        experiment=f"{prefix}/{record.benchmark}",
        identity={"kind": "cell", "cell_id": record.cell_id},
        name=record.run_name,
        tags={**_tags(record), **_notes(metrics), **logged_table("items.json"), "status": status},
        params=_params(record),
        metrics=dict(_numbers(metrics)),
        status={"complete": "FINISHED", "incomplete": "KILLED", "failed": "FAILED"}[status],
        replaces=(WORST,),
    )
    files = {"prompt.txt": record.prompt_example.encode(), "cell.json": record.dump()}
    return update, files | (_tables(rows) if rows else {})


def sweep_begun(
    sweep_record: Mapping[str, Any], benchmark: str, records: Sequence[CellRecord], prefix: str
) -> tuple[RunUpdate, dict[str, bytes]]:
    """The summary run of a sweep that has begun."""
    view = _view(name for record in records for name in _headline(record))
    return replace(_sweep(sweep_record, benchmark, prefix), experiment_tags=view), _configuration(
        sweep_record
    )


def sweep_finished(
    sweep_record: Mapping[str, Any], benchmark: str, summaries: Sequence[CellSummary], prefix: str
) -> tuple[RunUpdate, dict[str, bytes]]:
    """The summary run of a sweep, with its leaderboard as description and artifacts."""
    lines = leaderboard.rows(summaries)
    markdown = leaderboard.markdown(lines)
    planned, ran = sum(s.planned for s in summaries), sum(s.done + s.failed for s in summaries)
    begun = _sweep(sweep_record, benchmark, prefix)
    update = replace(
        begun,
        key=f"sweep-{benchmark}-{sweep_record['sweep_id']}",
        status="FINISHED" if ran >= planned else "KILLED",
        tags={
            **begun.tags,
            **({"mlflow.note.content": markdown} if len(markdown) <= LONGEST_TAG else {}),
            "status": "complete" if ran >= planned else "incomplete",
        },
        metrics={
            "sweep/cells": float(len({s.record.cell_id for s in summaries})),
            "sweep/planned": float(planned),
            "sweep/done": float(sum(s.done for s in summaries)),
            "sweep/failed": float(sum(s.failed for s in summaries)),
        },
        experiment_tags=_view(_headlines(summaries)),
    )
    files = {"leaderboard.csv": leaderboard.csv_text(lines).encode(), "leaderboard.md": markdown.encode()}
    return update, files | _configuration(sweep_record)


def _sweep(sweep_record: Mapping[str, Any], benchmark: str, prefix: str) -> RunUpdate:
    sweep_id = str(sweep_record["sweep_id"])
    plain = {
        k: str(v) for k, v in sweep_record.items() if isinstance(v, str | int | float) and k != "sweep_id"
    }
    return RunUpdate(
        key=f"sweepbegun-{benchmark}-{sweep_id}",
        experiment=f"{prefix}/{benchmark}",
        identity={"kind": "sweep", "sweep_id": sweep_id},
        name=f"sweep {sweep_id}",
        tags={**plain, "benchmark": benchmark, "status": "running"},
    )


def retested(retest: Mapping[str, Any], benchmark: str, prefix: str) -> RunUpdate:
    """The run of a retest: found again by checkpoint and suite; charts go over `checkpoint_step`."""
    differences = {
        f"delta/{v['metric'].replace('/', '.')}": v["difference"]
        for v in retest["verdicts"]
        if v.get("difference") is not None
    }
    step = {} if retest["step"] is None else {"checkpoint_step": float(retest["step"])}
    plain = ("name", "model", "candidate", "fingerprint", "suite", "baseline", "verdict")
    return RunUpdate(
        key=f"retest-{retest['name']}-{retest['fingerprint'][:16]}-{retest['suite'][:12]}",
        experiment=f"{prefix}/{benchmark}",
        identity={"kind": "retest", "fingerprint": retest["fingerprint"], "suite": retest["suite"]},
        name=f"retest {retest['candidate']}: {retest['verdict']}",
        tags={name: str(retest[name]) for name in plain},
        params={name: str(retest[name]) for name in ("candidate", "baseline", "verdict")},
        metrics={**differences, **step},
        status="FINISHED",
    )


def _view(headline: Iterable[str]) -> dict[str, str]:
    """The experiment's saved view: bars of the leaderboard's metrics, failures and speed."""
    bars = [*dict.fromkeys(headline), "health/failed", "speed/throughput"]
    own = {name.rsplit("/", 1)[0] for name in bars}
    sections = sorted(
        {*own, "progress", "speech", "text", *(RUNNING + name for name in own - {"health", "speed"})}
    )
    return dict([saved_view.tag(bars, sections, time.time_ns() // 1_000_000)])


def _headline(record: CellRecord) -> list[str]:
    return [name for scorer in record.scorers for name in scorer.headlines]


def _headlines(summaries: Sequence[CellSummary]) -> Iterator[str]:
    """The headline metrics of each scorer, by the names of the runs."""
    for summary in summaries:
        wanted = set(_headline(summary.record))
        shown = replace(summary, metrics=tuple(m for m in summary.metrics if m.name in wanted))
        yield from (metric.name for metric in named(shown))


def _configuration(sweep_record: Mapping[str, Any]) -> dict[str, bytes]:
    return {"sweep.json": json.dumps(sweep_record, ensure_ascii=False, indent=1, default=str).encode()}


def _facets(record: CellRecord) -> dict[str, str]:
    """What cells are filtered, grouped and compared by."""
    return {
        "model": record.model,
        "checkpoint": record.checkpoint,
        "task": record.task,
        "prompt": record.prompt,
        "condition": record.condition,
        **{f"arm.{name}": value for name, value in record.arm.items()},
    }


def _tags(record: CellRecord) -> dict[str, str]:
    return {
        **_facets(record),
        "sweep_id": record.sweep_id,
        "benchmark": record.benchmark,
        "repeats": str(record.repeats),
        "planned": str(record.planned),
    }


def _params(record: CellRecord) -> dict[str, str]:
    prompt_sha256 = hashlib.sha256(record.prompt_example.encode()).hexdigest()
    return {
        **dict(_flat(record.adapter)),
        **{name: str(value) for name, value in record.condition_parameters.items()},
        **_facets(record),
        "prompt_sha256": prompt_sha256,
    }


def _flat(tree: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """`{"speaker": {"rate": 1}}` -> `speaker.rate`, `1`."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(tree, list | tuple):
        for index, value in enumerate(tree):
            yield from _flat(value, f"{prefix}.{index}")
    else:
        yield prefix, str(tree)


def _status(record: CellRecord, rows: Rows) -> str:
    if rows and all(row["status"] != "ok" for row in rows):
        return "failed"
    return "complete" if len(rows) >= record.planned else "incomplete"


def _notes(metrics: Sequence[Metric]) -> dict[str, str]:
    """Why a metric has no value, or what is to be known of it."""
    return {f"note.{m.name}": m.note for m in metrics if m.note}


def _numbers(metrics: Sequence[Metric]) -> Iterator[tuple[str, float]]:
    for m in metrics:
        if m.value is None:
            continue
        yield m.name, m.value
        if m.ci_low is not None and m.ci_high is not None:
            yield f"{m.name}_ci_low", m.ci_low
            yield f"{m.name}_ci_high", m.ci_high
        if not m.name.startswith(("health/", "speed/")):
            yield f"health/coverage.{m.name.replace('/', '.')}", m.coverage


def _tables(rows: Rows) -> dict[str, bytes]:
    """items.json in the layout of MLflow's `log_table`, items.parquet with every row."""
    columns = list(rows[0])
    shown = {"columns": columns, "data": [[row[c] for c in columns] for row in rows[:TABLE_ROWS]]}
    parquet = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), parquet)
    return {"items.json": json.dumps(shown, ensure_ascii=False).encode(), "items.parquet": parquet.getvalue()}
