"""Ids and seeds: content hashes over everything chosen that can change an answer.

Invariant: an id depends on what is asked (stimulus, prompt text, condition, arm, generation, checkpoint, repeat),
never on where or how it runs (worker count, batch size, host, date). An arm at its default is left out, so that a
new arm changes no old id. Two values that are equal as JSON have one id in every process and on every machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from farm.types import AudioSegment, Cell, Condition, Request

ID_DIGITS = 32
"""Hex digits of a trial or cell id: 128 bits of SHA-256, so that a billion trials collide with odds below 1e-20."""


def canonical(value: Any) -> bytes:
    """A value of JSON types as bytes, equal for equal values (keys sorted, no spaces, UTF-8)."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def digest(value: Any) -> str:
    """SHA-256 of a value's canonical JSON, 64 hex digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def request_digest(request: Request) -> bytes:
    """SHA-256 over a request's full content: system prompt, turns, texts, and the audio's bytes (by their digest)."""
    turns = [
        [
            [s.role, "audio", s.sha256] if isinstance(s, AudioSegment) else [s.role, "text", s.text]
            for s in turn
        ]
        for turn in request.turns
    ]
    return hashlib.sha256(canonical([request.system, turns])).digest()


def condition_identity(condition: Condition) -> dict[str, Any]:
    """What of a condition enters ids: its name, parameters and the versions of its classes."""
    return {
        "name": condition.name,
        "chain": [dict(s) for s in condition.chain],
        "versions": dict(condition.versions),
    }


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
    """Ids of one cell's trials: the cell is hashed once, each trial costs one update."""

    def __init__(self, cell: Cell, replicate: str = "") -> None:
        self._prefix = hashlib.sha256(canonical(_cell_identity(cell)))
        self._replicate = f"|{replicate}" if replicate else ""

    def trial_id(self, request: bytes, repeat: int) -> str:
        """The id of one repeat of the item whose `request_digest` is given."""
        h = self._prefix.copy()
        h.update(request + f"|{repeat}{self._replicate}".encode())
        return h.hexdigest()[:ID_DIGITS]


def cell_id(cell: Cell) -> str:
    """The cell's id, over what its trials share: an edited prompt template is another cell, with trials of its own."""
    return digest(_cell_identity(cell))[:ID_DIGITS]


def _seed(*parts: Any) -> int:
    return int.from_bytes(hashlib.sha256(canonical(list(parts))).digest()[:4], "big") >> 1


def condition_seed(item_key: str, condition: Condition, repeat: int) -> int:
    """Seed of a condition's random draws: the same for every model and prompt, so that contrasts are paired."""
    return _seed("condition", item_key, condition_identity(condition), repeat)


def sampling_seed(
    request: bytes, condition: Condition, arm: Mapping[str, str], repeat: int, replicate: str = ""
) -> int:
    """Seed of one request's sampling, whatever its neighbours in the batch."""
    return _seed("sampling", request.hex(), condition_identity(condition), dict(arm), repeat, replicate)
