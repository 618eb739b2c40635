"""A stand-in model for tests of the whole job: quick to load, and it writes down each trial that it begins."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from farm.types import AudioSegment, Item, Reply, Request, Score, Waveform


class Scribe:
    """Answers with a tone after some seconds; `notes` gets a line a trial."""

    version = "1"

    def __init__(self, *, notes: str, seconds: float = 0.0, device: str = "cpu") -> None:
        self._notes, self._seconds = notes, seconds

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        with open(self._notes, "a") as file:
            file.writelines(f"{request.trial_id}\n" for request in requests)
        time.sleep(self._seconds * len(requests))
        tone = Waveform(samples=0.1 * np.sin(np.arange(4000, dtype=np.float32)), sample_rate_hz=8000)
        return [Reply(text="a reply", speech=tone) for _ in requests]


class Echo:
    """Says back what it heard, with as much noise as its checkpoint's `config.json` tells."""

    version = "1"

    def __init__(self, *, checkpoint: Mapping[str, Any], device: str = "cpu") -> None:
        import json

        told = json.loads((Path(checkpoint["path"]) / "config.json").read_text())
        self._noise, self._fails = float(told["noise"]), int(told.get("fails", 0))

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        return [self._one(request) for request in requests]

    def _one(self, request: Request) -> Reply:
        heard = next(s.waveform for turn in request.turns for s in turn if isinstance(s, AudioSegment))
        assert heard is not None
        if int(request.trial_id, 16) % 12 < self._fails:
            raise ValueError("this checkpoint fails here")
        noise = np.random.default_rng(request.seed).normal(scale=self._noise, size=len(heard.samples))
        spoken = Waveform(
            samples=(heard.samples + noise).astype(np.float32), sample_rate_hz=heard.sample_rate_hz
        )
        return Reply(text="what I heard", speech=spoken)


class Floor:
    """Scores how loud a reply is where it is quietest, in dB: a quick stand-in for a network that hears noise."""

    version = "1"

    @classmethod
    def weights_fingerprint(cls, config: Mapping[str, Any]) -> str:
        return ""

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        return [
            [Score(name="test/floor_db", value=self._floor_db(reply), rater="floor")] for _, reply in heard
        ]

    def _floor_db(self, reply: Reply) -> float:
        assert reply.speech is not None
        samples = reply.speech.samples
        frames = samples[: len(samples) // 480 * 480].reshape(-1, 480)
        return float(20 * np.log10(np.quantile(np.sqrt((frames**2).mean(axis=1)), 0.1) + 1e-4))
