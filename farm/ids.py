"""Ids and seeds: content hashes over everything chosen that can change an answer.

Invariant: an id depends on what is asked (stimulus, prompt text, condition, arm, generation, checkpoint, repeat),
never on where or how it runs (worker count, batch size, host, date). An arm at its default is left out, so that a
new arm changes no old id. Two values that are equal as JSON have one id in every process and on every machine.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from farm.types import AudioSegment, Cell, Condition, Request

ID_DIGITS = 32
"""Hex digits of a trial or cell id: 128 bits of SHA-256, so that a billion trials collide with odds below 1e-20."""


# One encoder for all: `json.dumps` with arguments makes a new one each time, for every trial's seeds.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(value: Any) -> bytes:
    """A value of JSON types as bytes, equal for equal values (keys sorted, no spaces, UTF-8)."""
    return _ENCODER.encode(value).encode()


def digest(value: Any) -> str:
    """SHA-256 of a value's canonical JSON, 64 hex digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def request_digest(request: Request) -> bytes:
    """SHA-256 over a request's full content: system prompt, turns, texts, and the audio's bytes (by their digest)."""
    turns = [
        [
            [s.role, "audio", s.sha256 or s.seconds]
            if isinstance(s, AudioSegment)
            else [s.role, "text", s.text]
            for s in turn
        ]
        for turn in request.turns
    ]
    joined = [] if request.joined is None else [{"keep_last_s": request.joined.keep_last_s}]
    return hashlib.sha256(canonical([request.system, turns, *joined])).digest()


PATHS = ("sounds",)
"""Parameters of conditions that name a folder: its content's digest is among the `versions`, its path in no id."""


def condition_identity(condition: Condition) -> dict[str, Any]:
    """What of a condition enters ids: its name, parameters, the versions of its classes, and what it acts on."""
    identity = {
        "name": condition.name,
        "chain": [{k: v for k, v in step.items() if k not in PATHS} for step in condition.chain],
        "versions": dict(condition.versions),
    }
    return identity if condition.acts_on == "question" else identity | {"acts_on": condition.acts_on}


def _cell_identity(cell: Cell) -> dict[str, Any]:
    return {
        "benchmark": cell.benchmark,
        "task": cell.task,
        "model": dict(cell.model.identity),
        "versions": dict(cell.model.versions),
        "checkpoint": cell.model.checkpoint,
        "prompt": cell.prompt.name,
        "template": cell.template,
        "condition": condition_identity(cell.condition),
        "arm": dict(cell.arm),
    }


class TrialIds:
    """Ids and seeds of one cell's trials: what they share is written out once, each costs one hash."""

    def __init__(self, cell: Cell, replicate: str = "") -> None:
        self._prefix = hashlib.sha256(canonical(_cell_identity(cell)))
        self._replicate = f"|{replicate}" if replicate else ""
        self._condition = canonical(condition_identity(cell.condition))
        self._arm = canonical(dict(cell.arm))
        self._replicate_json = canonical(replicate)

    def trial_id(self, request: bytes, repeat: int) -> str:
        """The id of one repeat of the item whose `request_digest` is given."""
        h = self._prefix.copy()
        h.update(request + f"|{repeat}{self._replicate}".encode())
        return h.hexdigest()[:ID_DIGITS]

    def condition_seed(self, item_key: str, repeat: int) -> int:
        """Seed of a condition's random draws: the same for every model and prompt, so that contrasts are paired."""
        return _seed(b'["condition",%b,%b,%d]' % (canonical(item_key), self._condition, repeat))

    def sampling_seed(self, request: bytes, repeat: int) -> int:
        """Seed of one request's sampling, whatever its neighbours in the batch; the same for every model."""
        question = (request.hex().encode(), self._condition, self._arm, repeat, self._replicate_json)
        return _seed(b'["sampling","%b",%b,%b,%d,%b]' % question)


def _seed(content: bytes) -> int:
    """31 bits of the SHA-256 of a canonical JSON list."""
    return int.from_bytes(hashlib.sha256(content).digest()[:4], "big") >> 1


def cell_id(cell: Cell, replicate: str = "") -> str:
    """The cell's id, over what its trials share: an edited prompt template is another cell, with trials of its own.

    Trials that run again on purpose are cells of their own, so that they are never averaged with the first ones.
    """
    identity = _cell_identity(cell)
    return digest({**identity, "replicate": replicate} if replicate else identity)[:ID_DIGITS]
