"""What the engine costs: sleeping and null models through Ray workers into a store on disk.

Invariant: a rate is taken while all workers are up and have work, from the times at which they began their batches;
Ray's start and the model's load are outside of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import audio
import farm.plan
from bench.figures import Figure, memory_mb
from bench.standins import CLEAN, PLAIN, Questions, Sleeper, model, write_tone
from farm.plan import Progress, Sweep
from farm.store import Store
from farm.types import ModelSpec, Task
from workers import engine
from workers.status import StageStatus
from workers.stop import StopFlag

MODEL_S = 0.05
"""What a stand-in's batch takes, of whatever size."""
SCALING_MODEL_S = 0.2
"""Eight workers of the faster model decode 1,280 files a second, which alone keeps two cores busy."""
OVERHEAD_GOALS: Mapping[int, float] = {1: 0.95, 8: 0.98}
MOST_START_S = 60.0
NULL_BATCH = 64


@dataclass(slots=True)
class Watch:
    """Looks at a run from outside, and ends it when it has seen enough."""

    workers: int
    seconds: float
    """How long it lets all workers run; the first quarter is to warm up (imports, the first part) and not counted."""
    stop: StopFlag = field(default_factory=StopFlag)
    batches: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """Worker -> when it began its batches (seconds since 1970), and their sizes, in order."""
    _ready_s: float | None = None

    def step(self, statuses: Sequence[StageStatus]) -> None:
        """Takes the engine's statuses."""
        if self._ready_s is None and statuses[0].workers_ready == self.workers:
            self._ready_s = time.monotonic()
        if self._ready_s is not None and time.monotonic() > self._ready_s + self.seconds:
            self.stop.drain()

    def kept(self, rows: Sequence[Any]) -> None:
        """Takes rows that have become durable."""
        for row in rows:
            began_s = datetime.fromisoformat(row["started_at"]).timestamp()
            batches = self.batches.setdefault(row["worker"], [])
            if not batches or batches[-1][0] != began_s:
                batches.append((began_s, row["batch_size"]))

    @property
    def trials_per_s(self) -> float:
        """Sum of the workers' rates while all of them worked."""
        begin_s = max(batches[0][0] for batches in self.batches.values()) + self.seconds / 4
        end_s = min(batches[-1][0] for batches in self.batches.values())
        assert len(self.batches) == self.workers, (
            f"{len(self.batches)} workers of {self.workers} did anything"
        )
        return sum(_rate(batches, begin_s, end_s) for batches in self.batches.values())


def _rate(batches: Sequence[tuple[float, int]], begin_s: float, end_s: float) -> float:
    inside = [batch for batch in batches if begin_s <= batch[0] <= end_s]
    return sum(size for _, size in inside[:-1]) / (inside[-1][0] - inside[0][0])


def run_farm(
    spec: ModelSpec,
    task: Task,
    folder: str,
    *,
    repeats: int = 1,
    stop: StopFlag | None = None,
    on_step: Callable[[Sequence[StageStatus]], None] = lambda _: None,
    on_kept: Callable[[Sequence[Any]], None] = lambda _: None,
) -> None:
    """Runs one model over one task into a new store in `folder`, on the cluster that is connected."""
    sweep = Sweep(
        models=(spec,), tasks=(task,), prompts=(PLAIN,), conditions=(CLEAN,), scorers=(), repeats=repeats
    )
    plan, store = farm.plan.make(sweep), Store.open(f"{folder}/store")
    summary = engine.run(plan, (spec,), (), store, Progress(), stop=stop, on_step=on_step, on_kept=on_kept)
    assert not summary.failed, summary.failures


def steady_trials_per_s(*, workers: int, batch: int, seconds: float, model_s: float = MODEL_S) -> float:
    """The farm's rate with a sleeping model and a small sound file a trial, in steady state.

    Args:
        workers: Ray actors.
        batch: trials a batch.
        seconds: of running, a quarter of them to warm up.
        model_s: what a batch takes.
    """
    spec = model(seconds=model_s, workers={"count": workers, "max_batch": batch})
    watch = Watch(workers, seconds)
    # More than it can do: it is stopped by the clock, so that no worker runs out of work first.
    batches = int((seconds + MOST_START_S) / model_s) * workers
    with TemporaryDirectory() as folder:
        task = Questions(count=100, sound=write_tone(Path(folder) / "tone.wav"))
        run_farm(
            spec,
            task,
            folder,
            repeats=-(-batches * batch // task.count),
            stop=watch.stop,
            on_step=watch.step,
            on_kept=watch.kept,
        )
    return watch.trials_per_s


def bare_trials_per_s(*, batch: int, seconds: float) -> float:
    """The same model object in a loop over requests that have been heard before."""
    with TemporaryDirectory() as folder:
        task = Questions(count=batch, sound=write_tone(Path(folder) / "tone.wav"))
        heard = [audio.hear(task.request(item, PLAIN), CLEAN, 0)[0] for item in task.items()]
    sleeper = Sleeper(seconds=MODEL_S)
    done, began_s = 0, time.perf_counter()
    while time.perf_counter() < began_s + seconds:
        done += len(sleeper.answer(heard))
    return done / (time.perf_counter() - began_s)


def overhead(*, seconds: float = 20.0, goals: Mapping[int, float] = OVERHEAD_GOALS) -> list[Figure]:
    """The farm against a bare loop, the loop measured before and after.

    Args:
        seconds: of measuring each.
        goals: batch -> the share of the bare loop's rate that is to be reached.
    """
    figures = []
    for batch, goal in goals.items():
        bare = [bare_trials_per_s(batch=batch, seconds=seconds / 4)]
        through = steady_trials_per_s(workers=1, batch=batch, seconds=seconds)
        bare.append(bare_trials_per_s(batch=batch, seconds=seconds / 4))
        ratio = through / (sum(bare) / len(bare))
        figures.append(
            Figure(name=f"farm_over_bare_loop.batch_{batch}", value=ratio, goal=goal, better="higher")
        )
    return figures


def scaling(*, workers: int = 8, seconds: float = 20.0, model_s: float = SCALING_MODEL_S) -> list[Figure]:
    """Several workers of a sleeping model against one, in batches of 8."""
    one, many = (
        steady_trials_per_s(workers=count, batch=8, seconds=seconds, model_s=model_s)
        for count in (1, workers)
    )
    goal = 7.5 / 8 * workers
    return [Figure(name=f"{workers}_workers_over_1", value=many / one, goal=goal, better="higher")]


def null_model(*, trials: int = 200_000) -> list[Figure]:
    """A model that takes no time, text only: rate from the first durable rows to the last, and the driver's memory."""
    marks: list[tuple[float, int, float]] = []

    def kept(rows: Sequence[Any]) -> None:
        done = (marks[-1][1] if marks else 0) + len(rows)
        marks.append((time.monotonic(), done, memory_mb("VmRSS")))

    spec = model("null", workers={"max_batch": NULL_BATCH, "num_cpus": 1})
    task = Questions(count=min(trials, 2000))
    with TemporaryDirectory() as folder:
        run_farm(spec, task, folder, repeats=trials // task.count, on_kept=kept)
    at_s, done, rss_mb = (np.array(column) for column in zip(*marks, strict=True))
    second_half = done >= done[-1] / 2
    slope_mb = np.polyfit(done[second_half], rss_mb[second_half], 1)[0] * 100_000
    rate = (done[-1] - done[0]) / (at_s[-1] - at_s[0])
    peak_mb = memory_mb("VmHWM")
    thousands = f"{trials // 1000}k_trials"
    return [
        Figure(name="null_model_trials_per_s", value=float(rate), goal=4000, better="higher"),
        Figure(name=f"driver_peak_mb.{thousands}", value=peak_mb, goal=600, better="lower"),
        Figure(
            name="driver_growth_mb_per_100k_trials.second_half", value=float(slope_mb), goal=5, better="lower"
        ),
    ]


def reload(*, load_s: float = 2.0) -> list[Figure]:
    """From a worker's death to the end of its successor's load, beyond what the load itself takes."""
    with TemporaryDirectory() as folder:
        notes = Path(folder) / "times"
        run_farm(model(load_s=load_s, dies_once=str(notes)), Questions(count=4), folder)
        times = [float(line) for line in notes.read_text().split()]
    beyond_s = [loaded - died - load_s for died, loaded in pairwise(times)]
    return [Figure(name="reload_beyond_load_s", value=beyond_s[0], goal=5, better="lower")]
