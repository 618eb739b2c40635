"""The store shown in a real SQLite database: python -m pytest tests/tracking/test_projection.py."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from farm.metrics import CellSummary
from tests.farm.cells import MOS, record
from tests.tracking.results import MemoryStore, small_store
from tracking.projection import project
from tracking.tracker import TrackerReport, TrackingOptions, open_tracker

ROOT = Path(__file__).resolve().parents[2]
SWEEP = {"sweep_id": "sweep0", "command": "python jobs/sweep.py"}


def show(store: MemoryStore, folder: Path, **options: Any) -> tuple[list[CellSummary], TrackerReport]:
    tracker = open_tracker(
        TrackingOptions(uri=f"sqlite:///{folder}/mlflow.db", flush_s=0.1, **options), folder / "spool"
    )
    summaries = project(store, tracker)
    tracker.finish_sweep(SWEEP, summaries)
    return summaries, tracker.close(timeout_s=120)


def client_of(folder: Path) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")


def runs_of(folder: Path, query: str = "tags.kind = 'cell'") -> list[Any]:
    client = client_of(folder)
    experiment = client.get_experiment_by_name("speechfarm/toybench")
    return list(client.search_runs([experiment.experiment_id], query, order_by=["attributes.run_name"]))


def test_each_cell_is_one_flat_run_with_facets_metrics_and_intervals(tmp_path: Path) -> None:
    _, report = show(small_store(), tmp_path)
    assert (report.pending, report.rejected, report.runs, report.problem) == (0, 0, 3, "")
    clean, noisy = runs_of(tmp_path)
    assert noisy.info.run_name == "toy@1234567 · p1 · c1"
    assert noisy.info.status == "FINISHED"
    tags, params = noisy.data.tags, noisy.data.params
    assert {tags[k] for k in ("kind", "sweep_id", "cell_id", "model", "condition", "status")} == {
        *("cell", "sweep0", "c1", "toy", "white_10db", "complete")
    }
    assert params["snr_db"] == "10" and "snr_db" not in clean.data.params
    assert params["llm.max_new_tokens"] == "24"
    assert len(params["prompt_sha256"]) == 64
    assert "mlflow.parentRunId" not in tags
    metrics = noisy.data.metrics
    assert metrics[MOS] == pytest.approx(1.1)
    assert metrics[f"{MOS}_ci_low"] < 1.1 < metrics[f"{MOS}_ci_high"]
    assert metrics["health/coverage.quality.nisqa_mos"] == 0.75
    assert metrics["health/failed"] == 0.25
    assert metrics["choice/accuracy"] == 0.25


def test_artifacts_are_the_item_table_and_the_worst_speech(tmp_path: Path) -> None:
    show(small_store(), tmp_path, worst_samples=2)
    run = runs_of(tmp_path)[0]
    root = Path(run.info.artifact_uri.removeprefix("file://"))
    assert root.is_relative_to(tmp_path / "mlartifacts")
    table = json.loads((root / "items.json").read_text())
    assert table["columns"][:2] == ["item_key", "text"]
    assert [row[0] for row in table["data"]] == ["item 3", "item 0", "item 1", "item 2"]
    assert pq.read_table(root / "items.parquet").num_rows == 4
    samples = sorted(path.name for path in (root / "worst").iterdir())
    assert samples == ["1_nisqa_mos_1.00_item_0_r0.flac", "2_nisqa_mos_1.10_item_1_r0.flac"]
    assert (root / "worst" / samples[0]).read_bytes()[:4] == b"fLaC"
    assert (root / "prompt.txt").read_text() == "Answer in one sentence."
    assert json.loads(run.data.tags["mlflow.loggedArtifacts"]) == [{"path": "items.json", "type": "table"}]


def test_table_of_items_opens_with_mlflows_own_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show(small_store(1), tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    run = runs_of(tmp_path)[0]
    frame = client_of(tmp_path).load_table(run.info.experiment_id, "items.json", [run.info.run_id])
    assert list(frame["item_key"])[:2] == ["item 3", "item 0"]


def test_sweep_has_a_summary_run_with_the_leaderboard(tmp_path: Path) -> None:
    show(small_store(), tmp_path)
    (run,) = runs_of(tmp_path, "tags.kind = 'sweep'")
    root = Path(run.info.artifact_uri.removeprefix("file://"))
    assert "quality/nisqa_mos" in (root / "leaderboard.md").read_text()
    assert (root / "leaderboard.csv").read_text().count("\n") == 3
    assert run.data.metrics["sweep/failed"] == 2
    assert run.data.tags["mlflow.note.content"].startswith("| model |")


def test_shown_twice_updates_the_same_runs_with_what_is_new(tmp_path: Path) -> None:
    store = small_store()
    show(store, tmp_path, worst_samples=2)
    before = {run.info.run_id for run in runs_of(tmp_path)}
    store.reply_rows, store.score_rows = [], []
    store.add_cell(
        record("c0", planned=11, repeats=2, prompt_example="Another first item's prompt."), trials=11
    )
    store.add_cell(record("c1", condition="white_10db"))
    for score in store.score_rows[:4]:
        score["value"] = 5.0  # type: ignore[index]
    show(store, tmp_path, worst_samples=2)
    after = runs_of(tmp_path)
    assert {run.info.run_id for run in after} == before
    assert after[0].data.tags["repeats"] == "2"
    assert after[0].data.metrics["health/coverage"] == pytest.approx(10 / 11)
    samples = (Path(after[0].info.artifact_uri.removeprefix("file://")) / "worst").iterdir()
    assert sorted(path.name[:17] for path in samples) == ["1_nisqa_mos_1.20_", "2_nisqa_mos_1.30_"]


def test_a_corrected_value_replaces_the_old_one(tmp_path: Path) -> None:
    store = small_store(1)
    show(store, tmp_path)
    for score in store.score_rows:
        if score["name"] == MOS:
            score["value"] = 0.5  # type: ignore[index]
    show(store, tmp_path)
    assert runs_of(tmp_path)[0].data.metrics[MOS] == 0.5


def test_running_means_are_a_line_beside_the_final_values(tmp_path: Path) -> None:
    tracker = open_tracker(
        TrackingOptions(uri=f"sqlite:///{tmp_path}/mlflow.db", flush_s=0.1), tmp_path / "spool"
    )
    store = small_store(1)
    tracker.begin([record("c0")], SWEEP)
    tracker.progress("c0", {MOS: 3.0}, 1)
    tracker.progress("c0", {MOS: 2.0}, 2)
    assert tracker.close(120).pending == 0
    assert runs_of(tmp_path)[0].info.status == "RUNNING"
    show(store, tmp_path)
    run = runs_of(tmp_path)[0]
    history = client_of(tmp_path).get_metric_history(run.info.run_id, f"running/{MOS}")
    assert [(point.step, point.value) for point in history] == [(1, 3.0), (2, 2.0)]
    assert run.data.metrics[MOS] == pytest.approx(1.1)
    assert run.info.status == "FINISHED"


def test_a_cell_with_trials_missing_is_not_shown_as_finished(tmp_path: Path) -> None:
    store = MemoryStore()
    store.add_cell(record("c0", planned=10))
    show(store, tmp_path)
    run = runs_of(tmp_path)[0]
    assert (run.info.status, run.data.tags["status"]) == ("KILLED", "incomplete")


def test_database_is_in_write_ahead_mode_and_nothing_is_printed(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from tests.tracking.results import small_store\n"
        "from tests.tracking.test_projection import show; import sys; show(small_store(1), Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "")
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_links_open_the_charts_of_the_experiment(tmp_path: Path) -> None:
    _, report = show(small_store(1), tmp_path)
    experiment_id = runs_of(tmp_path)[0].info.experiment_id
    assert len(report.links) == 1
    assert report.links[0].startswith(f"http://127.0.0.1:5000/#/experiments/{experiment_id}/runs?")
    assert report.links[0].endswith("compareRunsMode=CHART&workflowType=machine_learning")


def test_off_gives_the_metrics_and_writes_nothing(tmp_path: Path) -> None:
    summaries, report = show(small_store(), tmp_path, enabled=False)
    assert [s.record.cell_id for s in summaries] == ["c0", "c1"]
    assert report == TrackerReport()
    assert list(tmp_path.iterdir()) == []
