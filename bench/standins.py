"""Stand-ins: a model that sleeps instead of computing, and a task whose questions mean nothing.

Invariant: they cost next to nothing themselves, so that what is measured is the farm. The model sleeps, as a process
does that waits for its GPU; with no time to sleep it is the null model. All around it (plan, Ray, store, audio,
tracking) is real.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from farm.types import (
    AudioSegment,
    Capabilities,
    Condition,
    Item,
    ModelSpec,
    Prompt,
    Reply,
    Request,
    Segment,
    Stimulus,
    TextSegment,
    WorkerOptions,
)

CLEAN = Condition(name="clean", chain=())
PLAIN = Prompt(name="p1", strength="zero")
RATE_HZ = 16_000
INSTRUCTION = (
    "You are a kind assistant who listens to how a thing is said and answers in one or two sentences. " * 6
)
"""As long as a benchmark's prompt."""


class Sleeper:
    """Answers any batch after a fixed time."""

    version = "1"

    def __init__(
        self, *, seconds: float = 0.0, load_s: float = 0.0, dies_once: str = "", device: str = "cpu"
    ) -> None:
        """Loads by sleeping.

        Args:
            seconds: that an answer takes, whatever the size of its batch.
            load_s: that loading takes.
            dies_once: a file; the first answer of a process that does not find it writes the time there (seconds since
                1970) and kills the process, each later load adds the time of its end.
            device: not used.
        """
        self._seconds, self._dies_once = seconds, Path(dies_once) if dies_once else None
        time.sleep(load_s)
        if self._dies_once and self._dies_once.exists():
            _note_time(self._dies_once)

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """One word per request."""
        if self._dies_once and not self._dies_once.exists():
            _note_time(self._dies_once)
            os.kill(os.getpid(), signal.SIGKILL)
        if self._seconds:
            time.sleep(self._seconds)
        return [Reply(text="yes") for _ in requests]


def _note_time(path: Path) -> None:
    with path.open("a") as file:
        file.write(f"{time.time()}\n")


@dataclass(slots=True, kw_only=True)
class Questions:
    """A task of any number of questions: short texts, or texts with one sound file for all of them."""

    count: int
    sound: Path | None = None
    """None: text only, so that no time goes into decoding."""
    name: str = "bench.questions"
    benchmark: str = "bench"

    def items(self) -> Iterable[Item]:
        """Every question."""
        sounds = (_sound(self.sound),) if self.sound else ()
        for number in range(self.count):
            key = f"question{number:07d}"
            turn: tuple[Segment, ...] = (*sounds, TextSegment(role="question", text=key))
            yield Item(
                key=key,
                benchmark=self.benchmark,
                task=self.name,
                unit=f"script{number // 4:07d}",
                pair_id=key,
                stimulus=Stimulus(turns=(turn,)),
                gold={"answer": "yes"},
                factors={"voice_style": ("target", "neutral")[number % 2], "topic": f"topic{number % 17}"},
            )

    def template(self, prompt: Prompt) -> str:
        """The same instruction for every prompt."""
        return INSTRUCTION

    def request(self, item: Item, prompt: Prompt) -> Request:
        """The question under the instruction."""
        return Request(system=f"{prompt.name}: {INSTRUCTION}", turns=item.stimulus.turns)


def _sound(path: Path) -> AudioSegment:
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return AudioSegment(role="question", path=str(path), sha256=sha256, seconds=tone().size / RATE_HZ)


def tone(seconds: float = 0.25) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A quiet tone, shape (frames,), at `RATE_HZ`."""
    t = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    return (0.2 * np.sin(2 * np.pi * 220 * t)).astype(np.float32)


def write_tone(path: Path) -> Path:
    """A small WAV file."""
    import soundfile

    soundfile.write(path, tone(), RATE_HZ)
    return path


def model(name: str = "sleeper", *, workers: Mapping[str, Any] | None = None, **adapter: Any) -> ModelSpec:
    """The stand-in as a model of a sweep.

    Args:
        name: of the model.
        workers: fields of `WorkerOptions`; a small share of a CPU each, since a sleeping process needs none.
        adapter: arguments of `Sleeper`.
    """
    options = WorkerOptions(**{"num_cpus": 0.125, "max_batch": 1, **(workers or {})})
    return ModelSpec(
        name=name,
        adapter={"_target_": "bench.standins.Sleeper", **adapter},
        checkpoint=hashlib.sha256(name.encode()).hexdigest(),
        versions={"bench.standins.Sleeper": Sleeper.version},
        identity={"_target_": "bench.standins.Sleeper", "name": name},
        capabilities=Capabilities(text_out=True, speech_out=False, max_batch=options.max_batch),
        workers=options,
    )
