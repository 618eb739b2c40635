"""One driver a store: the second is told who the first is; a dead or stuck one is replaced by exactly one."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from farm import lease as leases
from farm.lease import LeaseLost, StoreBusy, hold
from farm.store import Store
from tests.farm.store_rows import reply

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from farm.lease import StoreBusy, hold
from farm.store import Store
url, stale_s = sys.argv[1], float(sys.argv[2])
try:
    with hold(Store.open(url), "driver", heartbeat_s=stale_s / 5, stale_s=stale_s) as lease:
        print("held", flush=True)
        sys.stdin.readline()
        lease.check()
except StoreBusy as busy:
    print("busy", busy, flush=True)
"""


def start(store: Store, stale_s: float = 30.0) -> "subprocess.Popen[str]":
    """A driver that holds the lease until it reads a line or the end of its input."""
    command, pipe = [sys.executable, "-c", HOLD, store.url, str(stale_s)], subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


@contextmanager
def driver(store: Store, stale_s: float = 30.0) -> Iterator["subprocess.Popen[str]"]:
    process = start(store, stale_s)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "store"))


@pytest.fixture(params=["local", "memory"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "store") if request.param == "local" else f"memory://{uuid4().hex}")


def test_the_second_driver_is_told_who_the_first_is(store: Store) -> None:
    with driver(store) as first:
        assert line(first) == "held\n"
        with pytest.raises(StoreBusy, match=rf"in use by driver \(host .*, pid {first.pid}, since 20"):
            with hold(store, "second"):
                pass


def test_a_store_is_free_again_when_its_driver_ends(any_store: Store) -> None:
    for _ in range(3):
        with hold(any_store, "driver") as lease:
            lease.check()
            with pytest.raises(StoreBusy), hold(any_store, "inner"):
                pass
    assert len(any_store.uris("lease")) == 1


def test_two_stores_are_held_at_once(tmp_path: Path) -> None:
    with hold(Store.open(str(tmp_path / "a")), "x"), hold(Store.open(str(tmp_path / "b")), "x"):
        pass


def test_a_driver_killed_on_this_machine_is_replaced_at_once(store: Store) -> None:
    with driver(store) as first:
        assert line(first) == "held\n"
        first.send_signal(signal.SIGKILL)
        time.sleep(0.1)  # it stays a zombie: nobody has waited for it
        with hold(store, "second") as lease:
            lease.check()


def test_a_reused_process_id_is_not_the_dead_driver(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = replace(leases._me("dead"), started="1")
    assert store.files.create("lease/00000001.json", leases._dump(dead))
    with hold(store, "second"):
        pass


def elsewhere(store: Store, number: int = 1, age_s: float = 0.0) -> None:
    """A driver on another machine that took the lease and died."""
    holder = replace(leases._me("remote"), host="far", machine="far")
    store.files.create(f"lease/{number:08d}.json", leases._dump(holder))
    then = time.time() - age_s
    os.utime(Path(store.url, f"lease/{number:08d}.json"), (then, then))


def test_a_driver_elsewhere_is_replaced_only_when_its_heartbeat_is_stale(store: Store) -> None:
    elsewhere(store, age_s=20)
    with pytest.raises(StoreBusy, match="host far"), hold(store, "second"):
        pass
    elsewhere(store, 2, age_s=40)
    with hold(store, "second"):
        pass


def test_of_many_takers_of_a_stale_lease_one_wins(store: Store) -> None:
    elsewhere(store, age_s=1000)
    takers = [start(store) for _ in range(4)]
    said = [line(taker).split(" ")[0].strip() for taker in takers]
    ends = [taker.communicate() for taker in takers]
    assert sorted(said) == ["busy"] * 3 + ["held"], ends
    assert all(taker.returncode == 0 for taker in takers), ends


def test_of_takers_that_saw_the_same_old_lease_one_wins(store: Store) -> None:
    """Both have read that lease 1 is stale before either makes lease 2."""
    elsewhere(store, age_s=1000)
    seen = leases._last(store.files)
    mine = leases._me("a")
    assert seen and store.files.create("lease/00000002.json", leases._dump(mine))
    assert not store.files.create("lease/00000002.json", leases._dump(mine))


def test_a_taker_that_slept_through_two_leases_withdraws(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere(store, 1, age_s=1000)
    stale = leases._last(store.files)
    with hold(store, "second"):
        pass
    with hold(store, "third"):  # lease 3; 1 and 2 are forgotten
        real, answers = leases._last, [stale]
        monkeypatch.setattr(leases, "_last", lambda files: answers.pop() if answers else real(files))
        monkeypatch.setattr(leases, "_alive", lambda files, lease, stale_s: "" if lease is stale else "third")
        with pytest.raises(StoreBusy, match="third"), hold(store, "sleeper"):
            pass
        assert [uri for uri in store.uris("lease")] == ["lease/00000003.json"]


def test_a_stopped_driver_finds_out_that_it_was_replaced(store: Store) -> None:
    with driver(store, stale_s=1.0) as first:
        assert line(first) == "held\n"
        first.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        with hold(store, "second", heartbeat_s=0.2, stale_s=1.0) as lease:
            first.send_signal(signal.SIGCONT)
            _, errors = first.communicate("go on", timeout=60)
            assert "LeaseLost" in errors and "taken over by second" in errors
            lease.check()
        with hold(store, "third"):
            pass


def test_the_heartbeat_keeps_a_lease_longer_than_its_staleness(any_store: Store) -> None:
    with hold(any_store, "first", heartbeat_s=0.1, stale_s=1.5):
        for _ in range(10):
            time.sleep(0.2)
            with pytest.raises(StoreBusy), hold(any_store, "second", stale_s=1.5):
                pass


def test_a_lost_lease_stops_the_writes(any_store: Store) -> None:
    with hold(any_store, "first", heartbeat_s=0.05) as lease:
        any_store.append_replies([reply(1)])
        assert any_store.flush(force=True) == 1
        other = replace(leases._me("thief"), host="far", machine="far")
        any_store.files.create("lease/00000009.json", leases._dump(other))
        wait_for(lambda: "thief" in lease.lost)
        any_store.append_replies([reply(2)])
        for write in (lambda: any_store.flush(force=True), any_store.compact, any_store.sweep_orphans):
            with pytest.raises(LeaseLost, match="taken over by thief"):
                write()
    assert any_store.uris("lease")[-1] == "lease/00000009.json", "a lost lease is not released for its taker"


def test_a_driver_that_wakes_up_finds_out_before_it_writes(store: Store) -> None:
    with hold(store, "sleeper") as lease:
        store.files.create("lease/00000002.json", leases._dump(leases._me("second")))
        lease._last_beat -= 3600
        store.append_replies([reply(1)])
        with pytest.raises(LeaseLost, match="taken over by second"):
            store.flush(force=True)


def test_a_driver_whose_store_is_deleted_loses_its_lease_and_ends(store: Store) -> None:
    with hold(store, "first", heartbeat_s=0.05) as lease:
        shutil.rmtree(store.url)
        wait_for(lambda: bool(lease.lost))
        with pytest.raises(LeaseLost, match="no heartbeat"):
            lease.check()


def test_a_lease_file_cut_short_by_a_crash_is_stale_like_any_other(store: Store) -> None:
    path = Path(store.url, "lease/00000001.json")
    path.parent.mkdir()
    path.write_bytes(b'{"owner": "dri')
    with pytest.raises(StoreBusy, match="unknown driver"), hold(store, "second"):
        pass
    os.utime(path, (1, 1))
    with hold(store, "second"):
        pass


def test_a_lease_is_released_on_a_full_disk(tmp_path: Path) -> None:
    folder = tmp_path / "mount"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        store = Store.open(str(folder / "store"))
        with hold(store, "first") as lease:
            with pytest.raises(OSError, match="No space"):
                Path(folder, "ballast").write_bytes(b"x" * 2**21)
            lease.beat()
            lease.check()
        assert store.uris("lease") == ["lease/00000001.released"]
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_lease_needs_no_hard_links(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with hold(store, "first"), pytest.raises(StoreBusy), hold(store, "second"):
        pass
