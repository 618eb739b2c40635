"""Stand-ins for a model and a scorer: real ones neither crash, hang nor run out of memory when a test wants them to.

What they do is asked for by words in a trial's text (the item's key) or by arguments; everything around them, Ray, the
store, the audio and the plan, is real. Each process appends a line to `loads` when it has loaded, and the keys of every
batch that it begins, so that tests can count loads and see batches.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from farm.types import AudioSegment, Failure, Item, Reply, Request, Score, TextSegment, Waveform


def key_of(request: Request) -> str:
    """The item's key, which the task puts into the request as its text."""
    return next(s.text for turn in request.turns for s in turn if isinstance(s, TextSegment))


def _note(path: str, line: str) -> None:
    with open(path, "a") as file:
        file.write(line + "\n")


def _wait_for(path: str) -> None:
    while path and not os.path.exists(path):
        time.sleep(0.02)


class Parrot:
    """Answers with the key and a tone; misbehaves at keys that begin with a word it knows."""

    version = "1"

    def __init__(
        self,
        *,
        notes: str,
        device: str = "cpu",
        seconds: float = 0.0,
        oom_above: int = 0,
        speech: bool = True,
        load: str = "",
        until: str = "",
        until_last: str = "",
    ) -> None:
        if load == "raise":
            _note(f"{notes}/loads", str(os.getpid()))
            raise ValueError("no such checkpoint")
        if load == "crash":
            _note(f"{notes}/loads", str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        if load == "hang":
            _note(f"{notes}/loads", str(os.getpid()))
            time.sleep(600)
        self._notes, self._device, self._seconds = notes, device, seconds
        self._oom_above, self._speech, self._until, self._until_last = oom_above, speech, until, until_last
        _note(f"{notes}/loads", f"{os.getpid()} {device}")

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        keys = [key_of(request) for request in requests]
        _note(f"{self._notes}/batches", " ".join([str(os.getpid()), *keys]))
        if self._oom_above and len(keys) > self._oom_above:
            raise MemoryError(f"{len(keys)} at once")
        if any(key.startswith("kill") for key in keys):
            os.kill(os.getpid(), signal.SIGKILL)
        if any(key.startswith("hang") for key in keys):
            time.sleep(600)
        if any(key.startswith("cuda") for key in keys):
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        if any(key.startswith("big") for key in keys):
            raise MemoryError("one item is too large")
        for key in keys:
            if key.startswith("raise"):
                raise KeyError(f"no token for {key}")
        time.sleep(self._seconds)
        if any(key.startswith("short") for key in keys):
            return []
        _wait_for(self._until)
        if any(key == "item5" for key in keys):
            _wait_for(self._until_last)
        return [self._reply(request, key) for request, key in zip(requests, keys, strict=True)]

    def _reply(self, request: Request, key: str) -> Reply:
        if key.startswith("refuse"):
            return Reply(failure=Failure(kind="input_error", message="refused"))
        heard = [s.waveform for turn in request.turns for s in turn if isinstance(s, AudioSegment)]
        level = sum(float(np.abs(w.samples).mean()) for w in heard if w)
        noise = np.random.default_rng(request.seed).uniform(-0.1, 0.1, 800).astype(np.float32)
        if key.startswith("nan"):
            noise[3] = np.nan
        if key.startswith("mute"):
            noise = noise[:0]
        print(f"answered {key}", flush=True)
        text = f"{key} {level:.6f} {request.seed}"
        return Reply(text=text, speech=Waveform(samples=noise, sample_rate_hz=8000) if self._speech else None)


class Loudness:
    """A scorer: the level of the reply's speech and the length of its text; misbehaves at texts with a word."""

    version = "1"

    def __init__(self, *, notes: str, device: str = "cpu", load: str = "") -> None:
        _note(f"{notes}/scorers", f"{os.getpid()} {device}")
        if load == "raise":
            raise OSError("weights are damaged")

    @classmethod
    def weights_fingerprint(cls, config: Mapping[str, Any]) -> str:
        return ""

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        texts = [reply.text or "" for _, reply in heard]
        if any("scorekill" in text for text in texts):
            os.kill(os.getpid(), signal.SIGKILL)
        if any("scoreraise" in text for text in texts):
            raise ZeroDivisionError("no words")
        return [self._one(item, reply) for item, reply in heard]

    def _one(self, item: Item, reply: Reply) -> list[Score]:
        level = float(np.abs(reply.speech.samples).mean()) if reply.speech else None
        if "scorenan" in (reply.text or ""):
            level = float("nan")
        scores = [
            Score(name="test/level", value=level, rater="loudness", rater_kind="program"),
            Score(
                name="test/length",
                value=float(len(item.gold["answer"])),
                rater="loudness",
                rater_kind="program",
            ),
        ]
        return scores[:1] if "scorenames" in (reply.text or "") else scores


class Loud:
    """A model that cannot even be constructed quietly: it writes to file descriptors, as native code does."""

    version = "1"

    def __init__(self, *, device: str = "cpu") -> None:
        os.write(1, b"native out\n")
        os.write(2, b"native err\n")
        print("python out")
        sys.exit(7)

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        raise AssertionError
