"""Clusters: one of our own, one of several nodes on this machine (GPUs only declared), and drivers that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from tests.workers.sweeps import model, run
from workers import engine
from workers.cluster import can_grow, connect

QUICK_HEALTH_CHECKS = {
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "500",
    "RAY_health_check_failure_threshold": "2",
}
NODE = {"num_cpus": 2, "num_gpus": 1, "object_store_memory": 80 * 2**20}

DRIVER = """
import sys
from pathlib import Path
from tests.workers.sweeps import model, run
from workers.cluster import connect
folder, address = Path(sys.argv[1]), sys.argv[2] or None
with connect(address):
    run(folder, [f"item{n}" for n in range(40)], [model(folder / "notes", limit=2, seconds=0.1)])
"""


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A head without GPUs and two nodes with one each."""
    for name, value in QUICK_HEALTH_CHECKS.items():
        monkeypatch.setenv(name, value)
    head = {"num_cpus": 0, "num_gpus": 0, "include_dashboard": False, "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield cluster
    finally:
        cluster.shutdown()


def test_a_cluster_of_our_own_leaves_handlers_and_folders_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with connect(num_cpus=1, num_gpus=0):
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
        assert not can_grow()
        folder = Path(ray._private.worker._global_node.get_temp_dir_path())
        assert folder.exists() and len(str(folder)) < 30
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert not folder.exists() and not ray.is_initialized()


def test_a_cluster_that_is_not_there_is_a_clear_error() -> None:
    with (
        pytest.raises(ValueError, match="no Ray cluster to join .*refused"),
        connect("127.0.0.1:9"),
    ):
        pass


def test_a_lost_node_and_a_new_one(tmp_path: Path, nodes: Cluster) -> None:
    first, second = nodes.add_node(**NODE), nodes.add_node(**NODE)
    lost, used = False, set()
    spec = model(tmp_path / "notes", limit=2, seconds=0.15, workers={"count": 2, "num_gpus": 1})

    def watch(rows: Any) -> None:
        nonlocal lost
        used.update(row["worker"] for row in rows)
        if not lost and len(used) == 2:
            lost = True
            nodes.remove_node(second, allow_graceful=False)
            nodes.add_node(**NODE, wait=False)

    with connect(nodes.address):
        assert can_grow()
        ran = run(tmp_path, [f"item{n}" for n in range(120)], [spec], on_kept=watch)
    assert lost and first
    assert (ran.summary.done, ran.summary.failed) == (120, 0)
    assert len(used) == 3, "the new node was used"


def test_a_gpu_that_is_gone_for_good_does_not_hang_the_sweep(
    tmp_path: Path, nodes: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "GROWTH_S", 3.0)
    first, second = nodes.add_node(**NODE), nodes.add_node(**NODE)
    spec = model(tmp_path / "notes", limit=2, seconds=0.1, workers={"count": 2, "num_gpus": 1})
    removed: list[Any] = []

    def watch(rows: Any) -> None:
        if not removed and {row["worker"] for row in rows}:
            removed.append(nodes.remove_node(second, allow_graceful=False))

    with connect(nodes.address):
        ran = run(tmp_path, [f"item{n}" for n in range(60)], [spec], on_kept=watch)
        assert (ran.summary.done, ran.summary.failed) == (60, 0)
        nodes.remove_node(first, allow_graceful=False)
        rest = run(tmp_path, [f"item{n}" for n in range(63)], [spec])
    assert rest.summary.failures == {"parrot": {"load_error": 3}}


@pytest.mark.parametrize("joined", [False, True])
def test_workers_of_a_killed_driver_stop_and_the_rest_is_run_once(
    tmp_path: Path, joined: bool, request: pytest.FixtureRequest
) -> None:
    address = ""
    if joined:
        cluster = request.getfixturevalue("nodes")
        cluster.add_node(**NODE)
        address = cluster.address
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path), address], cwd=Path(__file__).parents[2]
    )
    _until(lambda: len(_lines(tmp_path / "notes" / "batches")) > 12, 60)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    pids = {int(line.split()[0]) for line in _lines(tmp_path / "notes" / "loads")}
    _until(lambda: not any(map(_alive, pids)), 20)
    with connect(address or None):
        ran = run(tmp_path, [f"item{n}" for n in range(40)], [model(tmp_path / "notes", limit=8)])
    assert ran.summary.skipped > 0 and ran.summary.skipped + ran.summary.done == 40
    assert len(ran.rows("trial_id")) == 40


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def _until(true: Any, seconds: float) -> None:
    deadline_s = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline_s, "did not happen in time"
        time.sleep(0.05)
