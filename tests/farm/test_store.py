"""Rows come back once, as last written, whatever the parts look like; files stay inside the store."""

import json
import math
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.parquet as pq
import pytest

from farm import parts
from farm.schema import REPLIES, SCORES, VERSION_KEY
from farm.store import Store, StoreError, reply_duckdb_query
from tests.farm.store_rows import failed, reply, score, trial


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "store") if request.param == "local" else f"memory://{uuid4().hex}")


@pytest.fixture
def local(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "store"))


def part_files(store: Store, table: str = "replies") -> list[str]:
    return [uri for uri in store.uris(table) if uri.endswith(".parquet")]


def test_rows_come_back_with_every_column(store: Store) -> None:
    store.append_replies([reply(1)])
    assert store.flush(force=True) == 1
    table = store.replies()
    assert table.schema.equals(REPLIES)
    row = table.to_pylist()[0]
    assert row["written_ns"] > 0
    expected = reply(1, factors=[("voice_style", "male")], arm=[])
    assert {name: row[name] for name in expected} == expected


def test_an_empty_store_has_empty_views(store: Store) -> None:
    assert store.replies().schema.equals(REPLIES)
    assert store.scores(cell_ids=["none"]).num_rows == 0
    assert not store.progress().done and store.scored() == {} and store.gold().num_rows == 0


def test_the_last_attempt_of_a_trial_counts(store: Store) -> None:
    store.append_replies([failed(1), reply(2), reply(1, attempt=2, text="second")])
    store.flush(force=True)
    store.append_replies([reply(2, attempt=2, text="again")])
    store.flush(force=True)
    seen = store.replies(columns=["trial_id", "attempt", "text"]).to_pylist()
    assert [(r["trial_id"], r["attempt"], r["text"]) for r in seen] == [
        (trial(1), 2, "second"),
        (trial(2), 2, "again"),
    ]


def test_turns_of_an_earlier_attempt_are_not_mixed_with_the_last(store: Store) -> None:
    store.append_replies([reply(1), reply(1, turn=1), reply(1, turn=2), failed(1, attempt=2)])
    store.flush(force=True)
    assert store.replies(columns=["attempt", "turn"]).to_pylist() == [{"attempt": 2, "turn": 0}]


def test_of_two_rows_with_one_key_the_last_written_counts(store: Store) -> None:
    for text in ("first", "last"):
        store.append_replies([reply(1, text=text)])
        store.append_scores([score(1, value=1.0 if text == "first" else 2.0)])
        store.flush(force=True)
    assert store.replies(columns=["text"]).to_pylist() == [{"text": "last"}]
    assert store.scores(columns=["value"]).to_pylist() == [{"value": 2.0}]


def test_a_clock_that_went_back_does_not_make_the_older_row_win(
    local: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.append_scores([score(1, value=1.0)])
    local.flush(force=True)
    monkeypatch.setattr(time, "time_ns", lambda: 5)
    again = Store.open(local.url)
    again.append_scores([score(1, value=2.0)])
    again.flush(force=True)
    assert again.scores(columns=["value"]).to_pylist() == [{"value": 2.0}]


def test_views_read_one_benchmark_and_some_cells(store: Store) -> None:
    store.append_replies([reply(n, benchmark="ab"[n % 2]) for n in range(12)])
    store.append_scores([score(n, benchmark="ab"[n % 2]) for n in range(12)])
    store.flush(force=True)
    assert store.replies(benchmark="a").num_rows == 6
    assert set(store.replies(columns=["cell_id"], cell_ids=["cell1"])["cell_id"].to_pylist()) == {"cell1"}
    assert store.scores(benchmark="b", cell_ids={"cell0", "cell2"}).num_rows == 4
    assert store.replies(cell_ids=[]).num_rows == 0
    assert store.replies(benchmark="c").num_rows == 0


def test_a_part_is_written_for_256_rows_or_after_a_second(
    local: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.append_replies([reply(n) for n in range(255)])
    assert local.flush() == 0 and local.buffered == 255
    local.append_replies([reply(255)])
    assert local.flush() == 256 and local.durable_replies == 256
    local.append_replies([reply(256), reply(257, model="other")])
    assert local.flush() == 0
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 1.1)
    assert local.flush() == 2
    assert len(part_files(local)) == 3 and local.buffered == 0


def test_no_score_is_durable_before_its_reply(local: Store) -> None:
    local.append_replies([reply(1)])
    local.append_scores([score(n) for n in range(256)])
    assert local.flush() == 257


def test_progress_tells_done_from_failed_trials(store: Store) -> None:
    store.append_replies(
        [reply(1), failed(2), failed(3), failed(3, attempt=2), failed(4), reply(4, attempt=2)]
    )
    store.append_replies([reply(5), failed(5, attempt=2), reply(6), failed(6, turn=1), failed(7)])
    store.flush(force=True)
    store.append_replies([reply(7)])
    store.flush(force=True)
    progress = store.progress()
    assert progress.done == {trial(1), trial(4), trial(7)}
    assert progress.attempts == {trial(2): 1, trial(3): 2, trial(5): 2, trial(6): 1}
    assert store.progress(count_done=True).attempts[trial(4)] == 2


def test_scored_gives_the_last_status_of_each_score(store: Store) -> None:
    store.append_scores([score(1, status="unavailable", value=None, reason="no weights"), score(2)])
    store.append_scores([score(1)])
    store.flush(force=True)
    assert store.scored() == {"score1": "ok", "score2": "ok"}
    assert store.scored(benchmark="other") == {}


def test_gold_of_one_annotation_is_kept_once(store: Store) -> None:
    row = {"benchmark": "b", "task": "b.t", "item_key": "i", "annotator": "a", "annotation_version": "1"}
    store.append_gold([row | {"gold": '"old"'}, row | {"gold": '"new"'}])
    store.flush(force=True)
    assert store.gold(columns=["gold"]).to_pylist() == [{"gold": '"new"'}]


@pytest.mark.parametrize(
    ("changed", "named"),
    [({"modell": "x"}, "modell"), ({"trial_id": ""}, "trial_id"), ({"seconds": math.nan}, "seconds")],
)
def test_a_row_that_cannot_be_kept_is_refused_when_it_comes(
    local: Store, changed: dict[str, object], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        local.append_replies([reply(1), reply(2, **changed)])
    assert local.buffered == 0


def test_a_value_of_the_wrong_type_is_named_with_its_column(local: Store) -> None:
    local.append_replies([reply(1, tokens_in="many")])
    with pytest.raises(ValueError, match="tokens_in"):
        local.flush(force=True)


def test_text_that_no_file_can_hold_is_made_readable(store: Store) -> None:
    store.append_replies([reply(1, text="broken \ud83d", factors={"k": "\ud83d"}), reply(2, text="whole 😀")])
    store.flush(force=True)
    assert store.replies(columns=["text"])["text"].to_pylist() == ["broken ?", "whole 😀"]


@pytest.mark.parametrize("name", ["../../escape", "a/b", "a=b&c", "..", "ünïcode %2F", "with space", "con:1"])
def test_partition_values_are_escaped(store: Store, name: str, tmp_path: Path) -> None:
    store.append_replies([reply(1, model=name, benchmark=name), reply(2)])
    store.flush(force=True)
    assert all(uri.count("/") == 3 for uri in part_files(store))
    assert store.replies(benchmark=name, columns=["model"]).to_pylist() == [{"model": name}]
    store.compact()
    assert store.replies(benchmark=name, columns=["model"]).to_pylist() == [{"model": name}]
    assert [p.name for p in tmp_path.iterdir()] in ([], ["store"])


@pytest.mark.parametrize(
    "uri",
    [
        "/etc/passwd",
        "../x",
        "speech/../../x",
        "",
        "a//b",
        "./x",
        "a/.",
        "s3://b/x",
        "a\\..\\b",
        "a\0b",
        "a/.tmp-1",
    ],
)
def test_no_uri_leaves_the_store(store: Store, uri: str) -> None:
    with pytest.raises(ValueError, match=r"store|kept"):
        store.put(uri, b"x")
    with pytest.raises(ValueError, match=r"store|kept"):
        store.get(uri)


@pytest.mark.parametrize("trial_id", ["../../../etc", "a/b", "", ".", "a"])
def test_a_trial_id_that_is_a_path_is_refused(local: Store, trial_id: str) -> None:
    with pytest.raises(ValueError, match="trial id"):
        local.speech_uri(trial_id, 1, 0)


def test_files_are_put_and_got(store: Store) -> None:
    uri = store.speech_uri(trial(1), 2, 0)
    assert uri == f"speech/{trial(1)[:2]}/{trial(1)}/2.0.flac"
    store.put(uri, b"one")
    store.put(uri, b"two")
    assert store.get(uri) == b"two" and store.uris("speech") == [uri]
    with pytest.raises(FileNotFoundError):
        store.get("cells/none.json")


def test_a_pickled_store_is_small_and_puts_into_the_same_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store.open("results")
    store.append_replies([reply(n) for n in range(100)])
    pickled = pickle.dumps(store)
    monkeypatch.chdir("/")
    pickle.loads(pickled).put("cells/a.json", b"{}")
    assert len(pickled) < 300 and store.get("cells/a.json") == b"{}"


def test_environments_are_kept_once(store: Store) -> None:
    digest = store.environment({"torch": "2.13.0", "ray": "2.60.0"})
    assert store.environment({"ray": "2.60.0", "torch": "2.13.0"}) == digest
    assert store.uris("environments") == [f"environments/{digest}.json"]
    assert json.loads(store.get(f"environments/{digest}.json")) == {"torch": "2.13.0", "ray": "2.60.0"}


def test_orphans_are_swept_and_files_of_rows_stay(store: Store) -> None:
    kept, buffered, late, known = (store.speech_uri(trial(n), 1, 0) for n in range(4))
    for uri in (kept, buffered, late, known):
        store.put(uri, b"sound")
    store.put("cells/a.json", b"{}")
    store.append_replies([reply(0, speech_uri=kept), reply(0, attempt=2)])
    store.flush(force=True)
    store.append_replies([reply(1, speech_uri=buffered)])
    assert store.sweep_orphans([known]) == [late]
    assert sorted(store.uris("speech")) == sorted([kept, buffered, known])
    assert store.get("cells/a.json") == b"{}"


def test_files_left_half_written_are_ignored_then_swept(local: Store) -> None:
    local.append_replies([reply(1)])
    local.flush(force=True)
    part = Path(local.url, part_files(local)[0])
    torn = [part.with_name(".tmp-torn"), Path(local.url, "speech", ".tmp-torn")]
    for path in torn:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(part.read_bytes()[:100])
    assert local.replies().num_rows == 1 and len(part_files(local)) == 1
    assert duckdb.sql(reply_duckdb_query(local.url)).arrow().read_all().num_rows == 1
    assert len(local.sweep_orphans()) == 2 and not any(path.exists() for path in torn)


def test_compaction_changes_no_view(store: Store) -> None:
    for start in range(0, 60, 5):
        store.append_replies([reply(n, model="ab"[n % 2]) for n in range(start, start + 5)])
        store.append_replies([failed(start, model="a"), reply(start, model="a", attempt=2)])
        store.append_scores([score(n) for n in range(start, start + 5)] + [score(0, value=float(start))])
        store.flush(force=True)
    before = store.replies(), store.scores(), store.progress()
    store.compact()
    assert len(part_files(store)) == 2 and len(part_files(store, "scores")) == 1
    assert (store.replies(), store.scores(), store.progress()) == before
    assert store.replies(cell_ids=["cell1"]).num_rows == 20
    store.append_replies([reply(99)])
    store.append_scores([score(0, value=99.0)])
    store.flush(force=True)
    store.compact()
    assert store.replies().num_rows == 61
    assert store.scores(columns=["value"])["value"].to_pylist()[-1] == 99.0


def test_large_parts_are_left_alone(local: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farm.compaction.MERGED_BYTES", 30_000)
    for start in range(0, 30):
        local.append_replies([reply(n) for n in range(start * 50, start * 50 + 50)])
        local.flush(force=True)
    local.compact()
    merged = part_files(local)
    assert 2 <= len(merged) < 30 and local.replies().num_rows == 1500
    local.compact()
    assert len(part_files(local)) <= len(merged) and local.replies().num_rows == 1500


def test_one_cell_of_a_merged_part_is_read_by_its_row_groups(
    local: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "ROW_GROUP_ROWS", 10)
    local.append_replies([reply(n) for n in range(60)])
    local.flush(force=True)
    local.append_replies([reply(60)])
    local.flush(force=True)
    local.compact()
    with pq.ParquetFile(Path(local.url, part_files(local)[0])) as file:
        assert file.metadata.num_row_groups == 7
        assert parts._row_groups(file.metadata, ["cell0"]) == [0, 1, 2]
    assert local.replies(cell_ids=["cell2"]).num_rows == 20


def unversioned(table: pa.Table) -> pa.Table:
    return table.replace_schema_metadata(None)


def versioned(version: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.replace_schema_metadata({VERSION_KEY: version})


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        (unversioned, "no SpeechFarm schema version.*move"),
        (versioned("0"), "has schema version 0.*new store"),
        (versioned("2"), "has schema version 2.*update SpeechFarm"),
    ],
)
def test_a_part_of_another_schema_version_is_refused_by_name(
    local: Store, change: Callable[[pa.Table], pa.Table], advice: str
) -> None:
    local.append_replies([reply(1)])
    local.flush(force=True)
    part = Path(local.url, part_files(local)[0])
    assert pq.read_schema(part).metadata[VERSION_KEY] == b"1"
    pq.write_table(change(pq.ParquetFile(part).read()), part)
    for read in (local.replies, local.progress, local.sweep_orphans):
        with pytest.raises(ValueError, match=f"{part.name}.*{advice}"):
            read()


def test_a_store_of_another_schema_version_is_refused_when_opened(local: Store) -> None:
    Path(local.url, "store.json").write_text('{"speechfarm_schema_version": 9}')
    with pytest.raises(ValueError, match="version 9"):
        Store.open(local.url)


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b[:-8] + b"\0" * 8, lambda b: b""])
def test_a_damaged_part_is_named(local: Store, damage: Callable[[bytes], bytes]) -> None:
    local.append_replies([reply(1)])
    local.flush(force=True)
    part = Path(local.url, part_files(local)[0])
    part.write_bytes(damage(part.read_bytes()))
    with pytest.raises(StoreError, match=part.name):
        local.replies()


def test_places_that_cannot_be_a_store_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for url in (
        str(tmp_path / "file"),
        str(tmp_path / "file" / "below"),
        "nosuch://bucket/x",
        "",
        "/proc/results",
    ):
        with pytest.raises(ValueError, match="store"):
            Store.open(url)


def test_an_object_store_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    store = Store.open(f"memory://{uuid4().hex}")
    store.append_replies([reply(1)])
    for error in (
        FileNotFoundError("The bucket is gone"),
        ConnectionError("reset"),
        KeyError("botocore's own"),
    ):

        def fail(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(MemoryFileSystem, "pipe_file", fail)
            with pytest.raises(StoreError, match=r"memory://.*mend|memory://.*mount"):
                store.flush(force=True)
    assert store.flush(force=True) == 1


def test_a_reader_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no result store"):
        Store.open(str(tmp_path / "typo"), create=False)
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("folder", ["store", "it's [odd] *?"])
def test_the_one_duckdb_query_gives_the_view(tmp_path: Path, folder: str) -> None:
    store = Store.open(str(tmp_path / folder))
    for start in range(0, 30, 10):
        store.append_replies([reply(n, model="ab"[n % 2]) for n in range(start, start + 10)])
        store.append_replies([reply(0, text=f"late {start}"), failed(start), reply(start, attempt=2, turn=1)])
        store.flush(force=True)
    expected = store.replies().to_pylist()

    def queried() -> list[dict[str, object]]:
        table = duckdb.sql(reply_duckdb_query(store.url)).arrow().read_all()
        return sorted(table.cast(REPLIES).to_pylist(), key=lambda row: row["written_ns"])

    assert queried() == expected
    store.compact()
    store.append_replies([reply(77)])
    store.flush(force=True)
    assert queried() == store.replies().to_pylist()


def test_plain_pyarrow_reads_the_parts(local: Store) -> None:
    local.append_scores([score(n) for n in range(3)])
    local.flush(force=True)
    local.append_scores([score(3)])
    local.flush(force=True)
    local.compact()
    table = pds.dataset(f"{local.url}/scores", partitioning="hive").to_table(columns=SCORES.names)
    assert table.num_rows == 4


def test_the_writer_keeps_nothing_of_what_is_durable(local: Store) -> None:
    local.append_replies([reply(0)])
    local.flush(force=True)
    before = pa.total_allocated_bytes()
    for start in range(0, 20_000, 256):
        local.append_replies([reply(n) for n in range(start, start + 256)])
        local.flush()
    assert local.buffered == 0 and local.durable_replies > 20_000
    assert pa.total_allocated_bytes() - before < 2**20
