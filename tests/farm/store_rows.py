"""Rows for the result store's tests, and a writer that a test can kill."""

import hashlib
import sys
from typing import Any

from farm.store import Store


def trial(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()[:32]


def reply(number: int, *, attempt: int = 1, **changed: Any) -> dict[str, Any]:
    row = {
        "trial_id": trial(number),
        "attempt": attempt,
        "turn": 0,
        "sweep_id": "sweep",
        "cell_id": f"cell{number % 3}",
        "checkpoint": "f" * 64,
        "model": "toy",
        "benchmark": "bench",
        "task": "bench.task",
        "item_key": f"item{number}",
        "factors": {"voice_style": "male"},
        "arm": {},
        "text": f"answer {number}",
        "events": [{"t_s": 0.5, "clock": "wall", "actor": "model", "kind": "first_token", "data": ""}],
        "condition_seed": number,
        "truncated": False,
        "seconds": 0.25,
    }
    return {**row, **changed}


def failed(number: int, *, attempt: int = 1, **changed: Any) -> dict[str, Any]:
    why = {"text": None, "failure_kind": "model_error", "failure_message": "no"}
    return reply(number, attempt=attempt, **{**why, **changed})


def score(number: int, **changed: Any) -> dict[str, Any]:
    row = {
        "score_id": f"score{number}",
        "trial_id": trial(number),
        "attempt": 1,
        "turn": 0,
        "cell_id": f"cell{number % 3}",
        "benchmark": "bench",
        "scorer": "quality",
        "name": "quality/nisqa_mos",
        "value": 3.5,
        "status": "ok",
    }
    return {**row, **changed}


def write_for_ever(url: str) -> None:
    """Appends trials that are not there yet, in batches of 8, and says after each flush what is durable."""
    store = Store.open(url)
    done = len(store.progress().done)
    print("started", flush=True)
    for start in range(done, 10**9, 8):
        rows = [reply(number) for number in range(start, start + 8)]
        speech_uri = store.speech_uri(trial(start), 1, 0)
        store.put(speech_uri, b"sound")
        store.append_replies([{**rows[0], "speech_uri": speech_uri}, *rows[1:]])
        store.flush(force=start % 32 < 8)
        print(done + store.durable_replies, flush=True)


if __name__ == "__main__":
    write_for_ever(sys.argv[1])
