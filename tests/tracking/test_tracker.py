"""MLflow away, slow or refusing, with a real server: python -m pytest tests/tracking/test_tracker.py."""

from __future__ import annotations

import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from farm.metrics import Metric
from tests.farm.cells import MOS, record
from tests.tracking.results import end, free_port, serve, small_store
from tracking import database
from tracking.mlflow_writer import AwayError, Writer
from tracking.projection import project
from tracking.spool import RunUpdate, Spool
from tracking.tracker import MlflowTracker, TrackingOptions, open_tracker

SWEEP = {"sweep_id": "sweep0"}


@pytest.fixture
def servers() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        end(process, signal.SIGKILL)


def options(port: int) -> TrackingOptions:
    return TrackingOptions(uri=f"http://127.0.0.1:{port}", flush_s=0.1)


def cell_runs(uri: str) -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("speechfarm/toybench")
    return list(client.search_runs([experiment.experiment_id], "tags.kind = 'cell'")) if experiment else []


def wait_until(condition: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def test_server_killed_midway_and_restarted_gets_every_run_once(
    tmp_path: Path, servers: list[subprocess.Popen[bytes]]
) -> None:
    port, store = free_port(), small_store(8)
    uri = f"http://127.0.0.1:{port}"
    servers.append(serve(tmp_path, port))
    tracker = open_tracker(options(port), tmp_path / "spool")
    records = [record(f"c{n}") for n in range(8)]
    tracker.begin(records, SWEEP)
    project(store, tracker, ["c0", "c1", "c2", "c3"])
    wait_until(lambda: len(cell_runs(uri)) >= 3)
    end(servers[0], signal.SIGKILL)
    start_s = time.perf_counter()
    summaries = project(store, tracker, [f"c{n}" for n in range(8)])
    tracker.finish_sweep(SWEEP, summaries)
    assert time.perf_counter() - start_s < 2.0
    servers.append(serve(tmp_path, port))
    report = tracker.close(timeout_s=120)
    while report.pending:  # the last round may have met the server's start
        report = open_tracker(options(port), tmp_path / "spool").close(timeout_s=120)
    runs = cell_runs(uri)
    assert sorted(run.data.tags["cell_id"] for run in runs) == [f"c{n}" for n in range(8)]
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert all(run.data.metrics[MOS] == pytest.approx(1.1) for run in runs)
    assert report.rejected == 0


def test_artifacts_reach_a_server_that_keeps_them(
    tmp_path: Path, servers: list[subprocess.Popen[bytes]]
) -> None:
    port, store = free_port(), small_store(1)
    servers.append(serve(tmp_path, port, "--artifacts-destination", str(tmp_path / "kept")))
    for _ in range(2):
        tracker = open_tracker(options(port), tmp_path / "spool")
        project(store, tracker)
        assert tracker.close(timeout_s=60).pending == 0
    (run,) = cell_runs(f"http://127.0.0.1:{port}")
    assert run.info.artifact_uri.startswith("mlflow-artifacts:")
    assert len([*(tmp_path / "kept").rglob("worst/*.flac")]) == 3


def test_without_a_server_the_spool_keeps_all_and_the_next_sweep_catches_up(
    tmp_path: Path, servers: list[subprocess.Popen[bytes]]
) -> None:
    port, store = free_port(), small_store(2)
    tracker = open_tracker(options(port), tmp_path / "spool")
    project(store, tracker)
    project(store, tracker)
    report = tracker.close(timeout_s=30)
    assert report.pending == 2 and report.runs == 0 and report.problem
    servers.append(serve(tmp_path, port))
    report = open_tracker(options(port), tmp_path / "spool").close(timeout_s=60)
    assert (report.pending, report.runs) == (0, 2)
    assert len(cell_runs(f"http://127.0.0.1:{port}")) == 2


def test_a_server_that_never_answers_holds_nobody_up(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        tracker = open_tracker(options(silent.getsockname()[1]), tmp_path / "spool")
        start_s = time.perf_counter()
        project(small_store(2), tracker)
        for step in range(1000):
            tracker.progress("c0", {MOS: 1.0}, step)
        assert time.perf_counter() - start_s < 2.0
        report = tracker.close(timeout_s=1.0)
    assert report.pending == 2
    assert 1.0 <= report.waited_s < 3.5


def test_what_mlflow_refuses_is_set_aside_and_the_rest_goes_on(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    tracker = open_tracker(TrackingOptions(uri=uri, flush_s=0.05), tmp_path / "spool")
    bad = [Metric(name="quality/what?", value=1.0)]
    tracker.finish_cell(record("bad"), bad, [], {})
    project(small_store(1), tracker)
    report = tracker.close(timeout_s=60)
    assert (report.pending, report.rejected) == (0, 1)
    (reason,) = [*(tmp_path / "spool").rglob("rejected.txt")]
    assert "what?" in reason.read_text()
    assert {run.data.tags["cell_id"] for run in cell_runs(uri)} >= {"c0"}


def test_a_run_deleted_in_the_ui_comes_back(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    tracker = open_tracker(TrackingOptions(uri=uri, flush_s=0.05), tmp_path / "spool")
    project(small_store(1), tracker)
    wait_until(lambda: cell_runs(uri) and cell_runs(uri)[0].info.status == "FINISHED")
    MlflowClient(tracking_uri=uri).delete_run(cell_runs(uri)[0].info.run_id)
    project(small_store(1), tracker)
    assert tracker.close(timeout_s=60).rejected == 0
    assert len(cell_runs(uri)) == 1


def test_a_database_that_another_program_holds_is_away_and_not_the_writers_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.1)
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(AwayError, match="locked"):
            Writer(f"sqlite:///{path}", None)
        holder.execute("ROLLBACK")
    Writer(f"sqlite:///{path}", None)


def test_a_second_process_leaves_the_spool_to_the_first(tmp_path: Path) -> None:
    tracking = TrackingOptions(uri=f"sqlite:///{tmp_path}/mlflow.db", flush_s=0.05)
    first = open_tracker(tracking, tmp_path / "spool")
    project(small_store(1), first)
    wait_until(lambda: cell_runs(tracking.uri))
    second = MlflowTracker(tracking, tmp_path / "spool")
    project(small_store(2), second)
    report = second.close(timeout_s=10)
    assert report.runs == 0
    assert first.close(timeout_s=60).pending == 0
    assert len(cell_runs(tracking.uri)) == 2


def test_updates_of_a_killed_process_are_whole_or_absent(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    update = RunUpdate(key="cell-c0", experiment="e", identity={}, name="n", tags={})
    (tmp_path / ".00001.1.000001-cell-c9" / "files").mkdir(parents=True)
    spool.put(update, {"worst/a.flac": b"1"})
    spool.put(update, {"worst/b.flac": b"2"})
    assert len(spool.waiting()) == 2
    assert spool.acquire()
    spool.drop_superseded()
    (left,) = spool.waiting()
    assert [path.name for path in (left / "files" / "worst").iterdir()] == ["b.flac"]
    spool.release()


def test_importing_tracking_does_not_import_mlflow() -> None:
    code = "import sys, tracking.projection, tracking.tracker, tracking.leaderboard; sys.exit('mlflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_update_renamed_into_place_while_leftovers_are_removed_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's thread writes while the writer's thread takes the spool over."""
    spool = Spool(tmp_path)
    half_written = tmp_path / ".1-cell-a"
    half_written.mkdir()

    def list_then_rename(folder: Path, pattern: str) -> Iterator[Path]:
        found = [half_written]
        half_written.rename(tmp_path / "1-cell-a")
        yield from found

    monkeypatch.setattr(Path, "glob", list_then_rename)
    assert spool.acquire()
    assert (tmp_path / "1-cell-a").is_dir()


def test_a_writer_that_dies_says_so_and_leaves_its_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Spool) -> None:
        raise OSError("the spool's disk is gone")

    monkeypatch.setattr(Spool, "drop_superseded", broken)
    tracker = open_tracker(TrackingOptions(uri=f"sqlite:///{tmp_path}/mlflow.db"), tmp_path / "spool")
    tracker.begin([record()], {"sweep_id": "s"})
    report = tracker.close(20)
    assert report.pending == 2
    assert "the spool's disk is gone" in report.problem
