"""Killed, full, read-only, unmounted, or crashed inside a compaction: no row is lost, none counts twice."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from farm.files import Entry, Files
from farm.local_files import LocalFiles
from farm.store import Store, StoreError, reply_duckdb_query
from tests.farm.store_rows import reply, score, trial

ROOT = Path(__file__).parents[2]
WRITER = [sys.executable, "-m", "tests.farm.store_rows"]


def kill_at_a_random_moment(url: str, odds: random.Random) -> int:
    """Starts a writer and kills it with SIGKILL; returns the rows that it said are durable."""
    writer = subprocess.Popen([*WRITER, url], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert writer.stdout and writer.stdout.readline() == "started\n"
    for _ in range(odds.randint(0, 12)):
        writer.stdout.readline()
    time.sleep(odds.uniform(0, 0.05))
    writer.send_signal(signal.SIGKILL)
    said = writer.communicate()[0].split("\n")[:-1]
    return int(said[-1]) if said else 0


def test_ten_kills_of_the_writer_lose_and_double_nothing(tmp_path: Path) -> None:
    url, odds = str(tmp_path / "store"), random.Random(7)
    for _ in range(10):
        promised = kill_at_a_random_moment(url, odds)
        store = Store.open(url)
        rows = store.replies(columns=["trial_id", "speech_uri"]).to_pylist()
        assert len(rows) >= promised
        assert [row["trial_id"] for row in rows] == [trial(n) for n in range(len(rows))]
        store.sweep_orphans()
        speech = sorted(row["speech_uri"] for row in rows if row["speech_uri"])
        assert sorted(store.uris("speech")) == speech
        assert not [p for p in Path(url).rglob(".tmp-*")]
    raw = duckdb.sql(f"SELECT count(*), count(DISTINCT trial_id) FROM '{url}/replies/*/*/part-*.parquet'")
    assert raw.fetchall() == [(len(rows), len(rows))] and len(rows) > 100


class Crash(BaseException):
    """Stands for kill -9: nothing between the store and the test handles it."""


def small_parts(url: str) -> Store:
    store = Store.open(url)
    for start in range(0, 40, 4):
        store.append_replies([reply(n) for n in range(start, start + 4)])
        store.append_scores([score(n) for n in range(start, start + 4)])
        store.flush(force=True)
    return store


def steps_of_a_compaction(url: str, monkeypatch: pytest.MonkeyPatch, crash_at: int) -> int:
    """Compacts with a crash before the n-th change of a file; returns how many changes were begun."""
    begun = 0

    def counted(method: str) -> Any:
        original = getattr(LocalFiles, method)

        def change(self: Files, uri: str, *rest: Any) -> Any:
            nonlocal begun
            begun += 1
            if begun >= crash_at:
                raise Crash
            return original(self, uri, *rest)

        return change

    with monkeypatch.context() as patched:
        for method in ("write", "remove"):
            patched.setattr(LocalFiles, method, counted(method))
        try:
            Store.open(url).compact()
        except Crash:
            return crash_at
    return begun


def test_a_crash_at_any_step_of_a_compaction_changes_no_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = small_parts(str(tmp_path / "original"))
    expected = original.replies(), original.scores(), original.progress()
    steps = 0
    for crash_at in range(1, 100):
        url = str(tmp_path / f"crash{crash_at}")
        shutil.copytree(original.url, url)
        if steps_of_a_compaction(url, monkeypatch, crash_at) < crash_at:
            break
        steps += 1
        store = Store.open(url)
        assert (store.replies(), store.scores(), store.progress()) == expected
        queried = duckdb.sql(reply_duckdb_query(url)).arrow().read_all()
        assert sorted(queried["written_ns"].to_pylist()) == expected[0]["written_ns"].to_pylist()
        store.compact()
        assert (store.replies(), store.scores(), store.progress()) == expected
        assert len([uri for uri in store.uris("replies") if uri.endswith(".parquet")]) == 1
    assert steps >= 2 * (3 + 10), "each table: two manifests, the merged part, ten removals"


def test_rows_of_a_crashed_compaction_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the commit and the removals, the manifest alone keeps readers of parts from reading both."""
    store = small_parts(str(tmp_path / "store"))
    steps_of_a_compaction(store.url, monkeypatch, crash_at=3)
    from farm.parts import live_parts

    assert len(live_parts(store.files, "replies")) == 1
    assert len([uri for uri in store.uris("replies") if uri.endswith(".parquet")]) == 11


def test_a_reader_begins_again_when_a_compaction_takes_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from farm import parts

    store = small_parts(str(tmp_path / "store"))
    listed, compacted = parts.live_parts, []

    def list_then_compact(*args: Any) -> Any:
        found = listed(*args)
        if not compacted:
            compacted.append(True)
            with monkeypatch.context() as patched:
                patched.setattr(parts, "live_parts", listed)
                Store.open(store.url).compact()
        return found

    monkeypatch.setattr(parts, "live_parts", list_then_compact)
    assert store.replies().num_rows == 40 and compacted


def test_a_listing_that_a_compaction_tore_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder may be listed before the merged part exists in one place, after a removal in another."""
    store = small_parts(str(tmp_path / "store"))
    listed, torn = LocalFiles.list, False

    def tear(self: LocalFiles, folder: str) -> list[Entry]:
        nonlocal torn
        if folder == "replies" and not torn:
            torn = True
            Store.open(store.url).compact()
            return []
        return listed(self, folder)

    monkeypatch.setattr(LocalFiles, "list", tear)
    assert store.replies().num_rows == 40 and torn


def test_readers_see_every_row_once_while_a_driver_writes_and_compacts(tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    code = (
        "import sys; from farm.store import Store; from tests.farm.store_rows import reply\n"
        "s = Store.open(sys.argv[1])\n"
        "for n in range(0, 400, 4):\n"
        "    s.append_replies([reply(i) for i in range(n, n + 4)]); s.flush(force=True)\n"
        "    if n % 40 == 0: s.compact()\n"
    )
    Store.open(url)
    driver, seen = subprocess.Popen([sys.executable, "-c", code, url], cwd=ROOT), 0
    while driver.poll() is None:
        rows = Store.open(url).replies(columns=["trial_id"])["trial_id"].to_pylist()
        assert rows == [trial(n) for n in range(len(rows))] and len(rows) >= seen
        seen = len(rows)
    assert driver.returncode == 0 and Store.open(url).replies().num_rows == 400


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "mount"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
    if done.returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=False, capture_output=True)


def fill(store: Store) -> int:
    """Writes until the store refuses; returns the rows that it promised."""
    promised = 0
    with pytest.raises(StoreError, match=r"disk full.*free") as refused:
        for start in range(0, 100_000, 64):
            noise = random.Random(start)
            store.append_replies(
                [reply(n, text=noise.randbytes(200).hex()) for n in range(start, start + 64)]
            )
            promised += store.flush(force=True)
    assert store.url in str(refused.value)
    return promised


def test_a_full_disk_keeps_what_was_promised_and_goes_on_when_freed(mount: Path) -> None:
    store = Store.open(str(mount / "store"))
    ballast = mount / "ballast"
    ballast.write_bytes(b"x" * 200_000)
    promised = fill(store)
    assert promised > 0 and store.replies(columns=["trial_id"]).num_rows == promised
    assert not list(mount.rglob(".tmp-*"))
    with pytest.raises(StoreError, match="disk full"):
        store.put("speech/aa/aa/1.0.flac", b"x" * 10**6)
    assert store.uris("speech") == []
    ballast.unlink()
    assert store.flush(force=True) == 64
    rows = store.replies(columns=["trial_id"])["trial_id"].to_pylist()
    assert rows == [trial(n) for n in range(promised + 64)]


def test_a_store_that_turns_read_only_is_named_and_still_read(mount: Path) -> None:
    store = Store.open(str(mount / "store"))
    store.append_replies([reply(1)])
    store.flush(force=True)
    subprocess.run(["mount", "-o", "remount,ro", mount], check=True)
    store.append_replies([reply(2)])
    with pytest.raises(StoreError, match=r"cannot be written.*permissions"):
        store.flush(force=True)
    with pytest.raises(StoreError, match="cannot be written"):
        store.put("cells/a.json", b"{}")
    assert Store.open(store.url).replies().num_rows == 1
    with pytest.raises(ValueError, match="cannot be used"):
        Store.open(str(mount / "new"))


def test_a_store_that_is_unmounted_is_not_written_beneath_the_mount(mount: Path) -> None:
    store = Store.open(str(mount))
    store.append_replies([reply(1)])
    subprocess.run(["umount", mount], check=True)
    with pytest.raises(StoreError, match="gone"):
        store.flush(force=True)
    assert list(mount.iterdir()) == []


def test_a_store_that_is_deleted_is_gone(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "store"))
    shutil.rmtree(store.url)
    store.append_replies([reply(1)])
    with pytest.raises(StoreError, match="gone"):
        store.flush(force=True)
    assert not Path(store.url).exists()


def test_a_file_size_limit_leaves_nothing_half_written(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "store"))
    pid = os.fork()
    if not pid:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            store.put("speech/aa/aa/1.0.flac", b"x" * 5000)
        except StoreError as error:
            os._exit(0 if "disk full" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert store.uris("") == ["store.json"] and not list(Path(store.url).rglob(".tmp-*"))
