"""The main job as a person starts it: exit statuses, resuming, stopping, and ten kills of the driver."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from farm.store import Store
from jobs.config import ROOT

MINI = ROOT / "data" / "echomind_mini"
STANDIN = f"hydra.searchpath=[file://{ROOT}/tests/jobs/conf]"


@dataclass(frozen=True)
class Job:
    """The job in a folder of its own, with the stand-in model."""

    folder: Path
    seconds: float = 0.0

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def notes(self) -> list[str]:
        """Trials that the model began, in order."""
        path = self.folder / "notes"
        return path.read_text().split() if path.exists() else []

    def start(self, *settings: str) -> subprocess.Popen[str]:
        command = [sys.executable, "jobs/sweep.py", STANDIN, "model=[scribe]", "scorer=[]", "tracking=off"]
        paths = [f"store={self.store}", f"hydra.run.dir={self.folder}/hydra"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SCRIBE_NOTES": str(self.folder / "notes"),
            "SCRIBE_SECONDS": str(self.seconds),
        }
        return subprocess.Popen(
            [*command, *paths, *settings],
            cwd=ROOT,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run(self, *settings: str) -> tuple[int, str]:
        process = self.start(*settings)
        out, _ = process.communicate(timeout=240)
        return process.returncode, out

    def done(self) -> set[str]:
        return (
            set(Store.open(str(self.store), create=False).progress().done) if self.store.exists() else set()
        )


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    yield Job(tmp_path)


def wait_until_begun(job: Job, process: subprocess.Popen[str], trials: int) -> None:
    deadline = time.monotonic() + 120
    while len(job.notes) < trials:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "the model never began"
        time.sleep(0.02)


def test_the_same_command_again_runs_nothing_and_more_repeats_only_add(job: Job) -> None:
    first = job.run("limit=2", "repeats=1")
    again = job.run("limit=2", "repeats=1")
    more = job.run("limit=2", "repeats=2")
    assert [status for status, _ in (first, again, more)] == [0, 0, 0], first[1] + again[1] + more[1]
    assert "12 trials run, 0 were done before" in first[1]
    assert "0 trials run, 12 were done before" in again[1]
    assert "12 trials run, 12 were done before" in more[1]
    assert max(Counter(job.notes).values()) == 1
    assert "scribe@" in first[1] or "scribe " in first[1], "no leaderboard"


def test_a_dry_run_loads_no_model_and_makes_no_store(job: Job) -> None:
    status, out = job.run("dry_run=true", "limit=3")
    assert status == 0, out
    assert "6 cells, 36 trials, 36 still to be run" in out
    assert not job.store.exists()
    assert job.notes == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["rerun=maybe"], "failed, all"),
        (["task=[echomind.singing]"], "echomind.conversation"),
        (["benchmark.path=/nowhere"], "/nowhere"),
        (["voice=[loud]"], "target"),
        (["store=/proc/nothing"], "/proc/nothing"),
        (["condition=[]"], "white_10db"),
    ],
)
def test_a_users_mistake_is_one_clear_message(job: Job, settings: list[str], said: str) -> None:
    status, out = job.run(*settings)
    assert status == 2, out
    assert said in out
    assert "Traceback" not in out


@pytest.mark.parametrize(
    ("setting", "said"), [("model=[nope]", "cascade_cpu"), ("prompt=[p9]", "p1"), ("repeat=3", "repeat")]
)
def test_what_hydra_refuses_ends_with_1_and_lists_the_options(setting: str, said: str) -> None:
    ended = subprocess.run(
        [sys.executable, "jobs/sweep.py", setting], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_missing_recordings_are_all_named_before_anything_runs(job: Job, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(MINI, data)
    removed = sorted((data / "data_synthesis" / "audio").rglob("*_target.wav"))[:2]
    for path in removed:
        path.unlink()
    status, out = job.run(f"benchmark.path={data}", "limit=null")
    assert status == 2, out
    assert all(path.name in out for path in removed)
    assert job.notes == []


def test_failures_beyond_the_budget_end_with_3_and_are_explained(job: Job, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(MINI, data)
    for path in (data / "data_synthesis" / "audio" / "male").glob("*_target.wav"):
        path.write_bytes(b"this is not audio")
    settings = [f"benchmark.path={data}", "limit=null", "prompt=[p1]", "condition=[clean]", "repeats=1"]
    status, out = job.run(*settings)
    assert status == 3, out
    assert job.run(*settings, "failure_budget=0.9")[0] == 0
    shown = subprocess.run(
        [sys.executable, "jobs/failures.py", "--store", str(job.store)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stdout
    assert "input_error" in shown and "_male_" in shown and "attempt 2" in shown
    assert f"python jobs/sweep.py '{STANDIN}' 'model=[scribe]'" in shown
    assert f"benchmark.path={data} limit=null 'prompt=[p1]'" in shown


def test_ctrl_c_keeps_what_is_in_flight_and_the_next_run_does_the_rest(tmp_path: Path) -> None:
    job = Job(tmp_path, seconds=0.1)
    process = job.start("limit=4", "repeats=2")
    wait_until_begun(job, process, 4)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130, out
    begun = job.notes
    assert set(begun) == job.done(), "something in flight was lost"
    assert 0 < len(begun) < 48
    assert job.run("limit=4", "repeats=2")[0] == 0
    assert Counter(job.notes) == Counter(dict.fromkeys(job.done(), 1))
    assert len(job.done()) == 48


def test_sigterm_twice_stops_now(tmp_path: Path) -> None:
    job = Job(tmp_path, seconds=5.0)
    process = job.start("limit=4")
    wait_until_begun(job, process, 4)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    began_s = time.monotonic()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 143, out
    assert time.monotonic() - began_s < 15, "it waited for the batch"


def test_a_second_driver_of_one_store_is_refused_and_told_of_the_first(tmp_path: Path) -> None:
    job = Job(tmp_path, seconds=0.5)
    first = job.start("limit=2")
    wait_until_begun(job, first, 1)
    status, out = job.run("limit=2")
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=120)
    assert status == 2, out
    assert f"pid {first.pid}" in out


@pytest.mark.timeout(600)
def test_ten_kills_of_the_driver_lose_nothing_and_run_nothing_finished_twice(tmp_path: Path) -> None:
    job = Job(tmp_path, seconds=0.02)
    settings = ["limit=12", "repeats=8", "prompt=[p1,p2]"]
    planned = 12 * 8 * 4
    chance = random.Random(20261201)
    finished: set[str] = set()
    for _ in range(10):
        begun = len(job.notes)
        process = job.start(*settings)
        wait_until_begun(job, process, min(begun + 1, planned))
        time.sleep(chance.uniform(0, 1.5))
        process.kill()
        process.communicate(timeout=60)
        again = finished & set(job.notes[begun:])
        assert not again, f"{len(again)} finished trials ran twice"
        finished = job.done()
        if len(finished) > planned - 60:
            break
    begun = len(job.notes)
    status, out = job.run(*settings)
    assert status == 0, out
    assert not finished & set(job.notes[begun:])
    rows = Store.open(str(job.store), create=False).replies(
        columns=["trial_id", "speech_uri", "failure_kind"]
    )
    assert rows.num_rows == planned == len(set(rows["trial_id"].to_pylist()))
    assert not any(rows["failure_kind"].to_pylist())
    kept = {f"{job.store}/{uri}" for uri in rows["speech_uri"].to_pylist()}
    assert all(Path(uri).stat().st_size > 0 for uri in kept)
