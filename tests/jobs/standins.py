"""A stand-in model for tests of the whole job: quick to load, and it writes down each trial that it begins."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from farm.types import Reply, Request, Waveform


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
