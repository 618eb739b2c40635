"""The engine on a real local Ray cluster; models are stand-ins where they have to misbehave."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from farm.records import cell_record
from farm.store import Store, StoreError
from tests.workers.sweeps import Sayings, model, plan_of, run, scorer, wav
from workers import engine
from workers.stop import StopFlag

pytestmark = pytest.mark.usefixtures("own_cluster")


def items(count: int, *odd: str) -> list[str]:
    """Keys of ordinary items with odd ones among them."""
    keys = [f"item{n}" for n in range(count)]
    for place, key in enumerate(odd):
        keys.insert(5 + 6 * place, key)
    return keys


def test_every_trial_is_answered_and_scored_once(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    ran = run(tmp_path, items(20), [model(notes)], [scorer(notes)], repeats=3)
    assert (ran.summary.done, ran.summary.failed, ran.summary.scored) == (60, 0, 60)
    rows = ran.rows()
    assert len(rows) == 60
    assert all(row["text"].startswith(row["item_key"]) and row["speech_seconds"] == 0.1 for row in rows)
    scores = ran.scores()
    assert len(scores) == 120 and {row["status"] for row in scores} == {"ok"}
    assert ran.loads() == 1


def test_the_same_run_again_loads_nothing(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    run(tmp_path, items(4), [model(notes)], [scorer(notes)])
    again = run(tmp_path, items(4), [model(notes)], [scorer(notes)])
    assert (again.summary.done, again.summary.skipped, again.summary.scored) == (0, 4, 0)
    assert again.loads() == 1 and again.loads("scorers") == 1


def test_done_trials_run_again_when_asked_to(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    run(tmp_path, items(4), [model(notes)], [scorer(notes)])
    again = run(tmp_path, items(4), [model(notes)], [scorer(notes)], again=True)
    assert (again.summary.done, again.summary.skipped, again.summary.scored) == (4, 0, 4)
    assert {row["attempt"] for row in again.rows("attempt")} == {2}


# --- items at fault -------------------------------------------------------------------------------------------------


def test_an_item_that_kills_its_worker_fails_alone_after_two_more_loads(tmp_path: Path) -> None:
    ran = run(tmp_path, items(30, "kill"), [model(tmp_path / "notes")])
    assert ran.kinds() == {"kill": "worker_crash"}
    assert ran.summary.done == 30
    assert ran.loads() <= 3
    assert Path(ran.failures()["kill"][1].split("log: ")[1]).exists()


def test_two_items_that_kill_their_worker_in_one_batch_both_fail_alone(tmp_path: Path) -> None:
    ran = run(tmp_path, ["a", "kill1", "b", "kill2", "c"], [model(tmp_path / "notes", workers={"count": 2})])
    assert ran.kinds() == {"kill1": "worker_crash", "kill2": "worker_crash"}
    assert ran.summary.done == 3


def test_a_failed_trial_is_tried_again_by_the_next_run(tmp_path: Path) -> None:
    run(tmp_path, ["a", "raise"], [model(tmp_path / "notes")])
    again = run(tmp_path, ["a", "raise"], [model(tmp_path / "notes")])
    assert (again.summary.skipped, again.summary.failed) == (1, 1)
    assert {row["item_key"]: row["attempt"] for row in again.rows()} == {"a": 1, "raise": 2}


def test_items_at_fault_fail_alone_with_kind_and_reason(tmp_path: Path) -> None:
    ran = run(tmp_path, items(40, "raise", "nan", "mute", "big", "refuse"), [model(tmp_path / "notes")])
    failures = ran.failures()
    assert ran.kinds() == {
        "raise": "model_error",
        "nan": "model_error",
        "mute": "model_error",
        "big": "out_of_memory",
        "refuse": "input_error",
    }
    assert "KeyError" in failures["raise"][1] and "standins.py" in failures["raise"][1]
    assert "not finite" in failures["nan"][1]
    assert ran.summary.failures == {"parrot": dict(Counter(ran.kinds().values()))}
    assert ran.loads() == 1


def test_a_wrong_number_of_replies_is_the_models_error(tmp_path: Path) -> None:
    ran = run(tmp_path, ["a", "short"], [model(tmp_path / "notes")])
    assert ran.kinds() == {"a": "model_error", "short": "model_error"}
    assert ran.failures()["a"][1] == "0 results for 2 inputs"


def test_audio_that_cannot_be_used_fails_its_trial_alone(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    files = {name: bad / f"{name}.wav" for name in ("undecodable", "missing", "empty", "silent", "long")}
    wav(files["long"], 6.0)
    files["undecodable"].write_bytes(b"RIFF no wave at all")
    files["empty"].write_bytes(b"")
    soundfile.write(files["silent"], np.zeros(8000, dtype=np.float32), 8000)
    ran = run(tmp_path, [*items(10), *files], [model(tmp_path / "notes")], files=files)
    assert ran.kinds() == dict.fromkeys(files, "input_error")
    for name in ("undecodable", "missing", "empty", "silent"):
        assert str(files[name]) in ran.failures()[name][1]
    assert ran.failures()["long"][1] == "6.00 s of audio; parrot takes 5 s at most"


def test_out_of_memory_shrinks_the_batch_for_good(tmp_path: Path) -> None:
    ran = run(tmp_path, items(100), [model(tmp_path / "notes", limit=32, oom_above=8)])
    assert (ran.summary.done, ran.summary.failed) == (100, 0)
    sizes = [len(batch) for batch in ran.batches()]
    assert sizes[:3] == [32, 16, 8] and max(sizes[3:]) == 8


def test_a_worker_that_takes_the_place_of_a_crashed_one_begins_with_the_shrunk_batch(tmp_path: Path) -> None:
    keys = [*items(41), "kill", *(f"later{n}" for n in range(80))]
    ran = run(tmp_path, keys, [model(tmp_path / "notes", limit=16, oom_above=4)])
    assert ran.kinds() == {"kill": "worker_crash"}
    assert [len(batch) for batch in ran.batches()].count(16) == 1


def test_an_item_that_hangs_is_killed_tried_alone_and_fails(tmp_path: Path) -> None:
    ran = run(tmp_path, items(12, "hang"), [model(tmp_path / "notes", workers={"timeout_s": 1.0})])
    assert ran.kinds() == {"hang": "timeout"}
    assert ran.summary.done == 12
    assert "timeout_s=1" in ran.failures()["hang"][1]
    assert ["hang"] in ran.batches() and ran.loads() <= 3


def test_time_in_the_queue_of_a_worker_is_not_held_against_a_batch(tmp_path: Path) -> None:
    slow = model(tmp_path / "notes", limit=1, seconds=0.7, workers={"timeout_s": 1.1})
    ran = run(tmp_path, items(4), [slow])
    assert (ran.summary.failed, ran.loads()) == (0, 1)


def test_a_dead_device_replaces_the_worker_and_finds_the_item(tmp_path: Path) -> None:
    ran = run(tmp_path, items(20, "cuda"), [model(tmp_path / "notes")])
    assert ran.kinds() == {"cuda": "worker_crash"}
    assert "illegal memory access" in ran.failures()["cuda"][1]
    assert ran.summary.done == 20 and ran.loads() <= 3


# --- models at fault ------------------------------------------------------------------------------------------------


def test_models_that_cannot_load_fail_at_once_and_the_other_finishes(tmp_path: Path) -> None:
    reasons = {"raise": "no such checkpoint", "crash": "worker process has died", "hang": "load_timeout_s=1"}
    limits = {"hang": 1.0}
    bad = [
        model(
            tmp_path / load,
            load,
            load=load,
            workers={"num_cpus": 0.25, "load_timeout_s": limits.get(load, 60.0)},
        )
        for load in reasons
    ]
    ran = run(tmp_path, items(10), [*bad, model(tmp_path / "notes")])
    assert ran.summary.failures == {**{name: {"load_error": 10} for name in reasons}, "parrot": {}}
    assert ran.summary.done == 10
    for row in ran.rows("model", "failure_message"):
        assert reasons.get(row["model"], "") in (row["failure_message"] or "")
    for load in ("raise", "crash"):
        assert len((tmp_path / load / "loads").read_text().splitlines()) == 2


def test_a_model_that_crashes_at_everything_is_given_up(tmp_path: Path) -> None:
    states: set[str] = set()
    bad = model(tmp_path / "notes", limit=2)
    ran = run(
        tmp_path, [f"kill{n}" for n in range(50)], [bad], on_step=lambda s: states.update(x.state for x in s)
    )
    assert ran.summary.failures == {"parrot": {"worker_crash": 50}}
    assert ran.loads() == 5
    assert sum("gave up after 5 crashes in a row" in message for _, message in ran.failures().values()) >= 45
    assert any(state.startswith("failed: gave up") for state in states)


def test_what_a_process_printed_before_it_died_is_in_its_log(tmp_path: Path) -> None:
    loud = model(tmp_path / "notes")
    loud.adapter["_target_"] = "tests.workers.standins.Loud"  # type: ignore[index]
    del loud.adapter["notes"]  # type: ignore[attr-defined]
    ran = run(tmp_path, ["a"], [loud])
    kind, message = ran.failures()["a"]
    assert kind == "load_error"
    log = Path(message.split("log: ")[1])
    assert log.parent == tmp_path / "store" / "logs"
    assert {"native out", "native err", "python out"} <= set(log.read_text().splitlines())


def test_a_worker_that_no_node_can_hold_is_a_load_error_at_once(tmp_path: Path) -> None:
    ran = run(tmp_path, items(3), [model(tmp_path / "notes", workers={"num_gpus": 4})])
    assert set(ran.kinds().values()) == {"load_error"}
    assert (
        "asks for 0.5 CPU, 4 GPU; the largest node of the cluster has 2 CPU, 1 GPU"
        in ran.failures()["item0"][1]
    )


# --- sharing the cluster --------------------------------------------------------------------------------------------


def test_two_models_share_a_gpu_at_the_same_time(tmp_path: Path) -> None:
    half = {"num_gpus": 0.5}
    one = model(tmp_path / "one", "one", until=str(tmp_path / "two" / "batches"), workers=half)
    two = model(tmp_path / "two", "two", until=str(tmp_path / "one" / "batches"), workers=half)
    assert run(tmp_path, items(4), [one, two]).summary.done == 8
    assert (tmp_path / "one" / "loads").read_text().endswith("cuda\n")


def test_a_gpu_passes_from_a_model_that_is_done_to_the_next(tmp_path: Path) -> None:
    whole = {"num_gpus": 1}
    models = [model(tmp_path / name, name, workers=whole) for name in ("one", "two")]
    assert run(tmp_path, items(4), models).summary.done == 8


def test_workers_are_no_more_than_there_is_work(tmp_path: Path) -> None:
    ran = run(tmp_path, items(3), [model(tmp_path / "notes", workers={"count": 4, "num_cpus": 0.1})])
    assert ran.loads() == 1


def test_scorers_take_turns_where_there_is_room_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "IDLE_S", 0.2)
    notes = tmp_path / "notes"
    scorers = [scorer(notes, f"s{n}", workers={"num_cpus": 1.0}) for n in range(3)]
    first_s: dict[str, bool] = {}

    def scored(rows: Any) -> None:
        first_s.update(dict.fromkeys((row["scorer"] for row in rows), True))
        if len(first_s) == 3:
            (tmp_path / "all").touch()

    # The model ends only when each scorer has scored something: none may wait for the others' last reply.
    slow = model(notes, limit=1, until_last=str(tmp_path / "all"), workers={"num_cpus": 1.0})
    ran = run(tmp_path, items(6), [slow], scorers, on_scored=scored)
    assert ran.summary.scored == 18


# --- replies do not depend on how they were run ---------------------------------------------------------------------


def test_batches_workers_and_order_change_no_reply(tmp_path: Path) -> None:
    def replies(name: str, limit: int, count: int) -> dict[tuple[str, int], tuple[str, bytes]]:
        folder = tmp_path / name
        spec = model(folder / "notes", limit=limit, workers={"count": count})
        keys = items(12) if name == "a" else items(12)[::-1]
        ran = run(folder, keys, [spec], repeats=2, files={k: tmp_path / "tone.wav" for k in keys})
        return {(r["item_key"], r["repeat"]): (r["text"], ran.store.get(r["speech_uri"])) for r in ran.rows()}

    wav(tmp_path / "tone.wav")
    assert replies("a", 1, 1) == replies("b", 8, 2) == replies("c", 5, 1)


# --- stopping -------------------------------------------------------------------------------------------------------


def test_draining_keeps_what_is_in_flight_and_the_next_run_does_the_rest(tmp_path: Path) -> None:
    stop = StopFlag()
    slow = model(tmp_path / "notes", limit=2, seconds=0.2)
    first = run(tmp_path, items(20), [slow], stop=stop, on_kept=lambda _: stop.drain())
    assert first.summary.stopped and 0 < first.summary.done < 20
    assert len(first.rows("trial_id")) == 2 * len(first.batches())
    second = run(tmp_path, items(20), [slow])
    assert (second.summary.skipped, second.summary.done) == (first.summary.done, 20 - first.summary.done)
    assert not second.summary.stopped


def test_stopping_now_waits_for_nothing(tmp_path: Path) -> None:
    stop = StopFlag()
    hanging = model(tmp_path / "notes")
    ran = run(
        tmp_path, ["hang"], [hanging], stop=stop, on_step=lambda s: stop.now() if s[0].in_flight else None
    )
    assert ran.summary.stopped and ran.summary.seconds < 20
    assert not ran.rows("trial_id")


def test_a_store_that_is_gone_stops_the_sweep(tmp_path: Path) -> None:
    slow = model(tmp_path / "notes", limit=1, seconds=0.1)
    with pytest.raises(StoreError):
        run(tmp_path, items(200), [slow], on_kept=lambda _: shutil.rmtree(tmp_path / "store"))


# --- scoring --------------------------------------------------------------------------------------------------------


def statuses(ran: Any) -> dict[str, set[str]]:
    """Item key -> statuses of its scores."""
    keys = {row["trial_id"]: row["item_key"] for row in ran.rows("trial_id", "item_key")}
    found: dict[str, set[str]] = {}
    for row in ran.scores():
        found.setdefault(keys[row["trial_id"]], set()).add(row["status"])
    return found


def test_replies_a_scorer_cannot_score_fail_alone(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    odd = ["scorekill", "scoreraise", "scorenan", "scorenames", "raise"]
    ran = run(tmp_path, items(20, *odd), [model(notes)], [scorer(notes)])
    found = statuses(ran)
    assert "raise" not in found, "a failed reply has no scores"
    assert {key for key, status in found.items() if "failed" in status} == set(odd) - {"raise"}
    assert found["scorenan"] == {"failed", "ok"}
    reasons = {row["reason"].split(":")[0] for row in ran.scores() if row["status"] == "failed"}
    assert {"worker_crash", "model_error"} <= reasons
    assert ran.loads("scorers") <= 3


def test_a_scorer_that_cannot_load_is_unavailable_and_tried_again_by_the_next_run(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    first = run(tmp_path, items(3), [model(notes)], [scorer(notes, load="raise")])
    assert {s for status in statuses(first).values() for s in status} == {"unavailable"}
    assert all("weights are damaged" in row["reason"] for row in first.scores())
    second = run(tmp_path, items(3), [model(notes)], [scorer(notes)])
    assert (second.summary.done, second.summary.scored) == (0, 3)
    assert {s for status in statuses(second).values() for s in status} == {"ok"}


def test_old_replies_are_scored_without_a_model(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    keys, spec = items(5), model(notes)
    run(tmp_path, keys, [spec])
    store = Store.open(str(tmp_path / "store"))
    plan = plan_of(Sayings(tmp_path / "data", keys), [spec])
    shown: list[Any] = []
    summary = engine.score(plan, [scorer(notes)], store, on_scored=shown.extend)
    assert (summary.scored, len(shown), store.scores().num_rows) == (5, 10, 10)
    assert engine.score(plan, [scorer(notes)], store).scored == 0
    assert (notes / "loads").read_text().count("\n") == 1


def test_a_scorer_of_other_tasks_gives_no_scores_and_stands_in_no_cell(tmp_path: Path) -> None:
    other = replace(scorer(tmp_path / "notes", "other"), tasks=("test.songs",))
    mine = replace(scorer(tmp_path / "notes", "mine"), tasks=("test.sayings",))
    ran = run(tmp_path, ["a", "b"], [model(tmp_path / "notes")], [other, mine])
    assert {row["scorer"] for row in ran.scores()} == {"mine"}
    plan = plan_of(Sayings(tmp_path / "data", ["a"]), [model(tmp_path / "notes")])
    record = cell_record(plan, plan.cells[0], [other, mine])
    assert [s.name for s in record.scorers] == ["mine"]


def test_a_model_without_speech_needs_no_speech_scorer(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    ran = run(tmp_path, items(3), [model(notes, speech=False)], [scorer(notes)])
    assert {s for status in statuses(ran).values() for s in status} == {"not_applicable"}
    assert not (notes / "scorers").exists()


def test_replies_that_do_not_fit_into_memory_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.stages.MOST_WAITING", 4)
    notes = tmp_path / "notes"
    ran = run(tmp_path, items(40), [model(notes, limit=16)], [scorer(notes)])
    assert ran.summary.scored == 40 and ran.store.scores().num_rows == 80
