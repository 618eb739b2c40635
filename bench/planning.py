"""What it costs to plan a large sweep and to find out what a store holds already.

Invariant: the sweep and the store are as large as the figure's name says; only the store's rows are made up, in parts
of the size in which a sweep writes them.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pyarrow as pa

import farm.plan
from bench.figures import Figure, memory_mb
from bench.standins import CLEAN, PLAIN, Questions, model, write_tone
from farm import parts
from farm.plan import Plan, Progress, Sweep
from farm.records import reply_row
from farm.schema import to_table
from farm.store import GROUP_ROWS, Store
from farm.types import Condition, Outcome, Prompt, Reply, Trial

MODELS, PROMPTS, CONDITIONS = 5, 3, 12


def plan(*, items: int = 10_000) -> list[Figure]:
    """Plans 5 models x 3 prompts x 12 conditions over `items` items, and deals every trial out once."""
    with tempfile.TemporaryDirectory() as name:
        task = Questions(count=items, sound=write_tone(Path(name) / "tone.wav"))
        began_s = time.perf_counter()
        sweep = _sweep(task)
        made = farm.plan.make(sweep)
        dealt = sum(1 for spec in sweep.models for _ in made.todo(spec, Progress()))
        seconds = time.perf_counter() - began_s
    assert dealt == made.trials == items * MODELS * PROMPTS * CONDITIONS
    trials = f"plan_{dealt // 1000}k_trials"
    return [
        Figure(name=f"{trials}_s", value=seconds, goal=30, better="lower"),
        Figure(name=f"{trials}_peak_gb", value=memory_mb("VmHWM") / 1000, goal=1, better="lower"),
    ]


def _sweep(task: Questions) -> Sweep:
    noise = [{"_target_": "audio.conditions.channel.Noise", "snr_db": n} for n in range(CONDITIONS)]
    return Sweep(
        models=tuple(model(f"model{n}") for n in range(MODELS)),
        tasks=(task,),
        prompts=tuple(Prompt(name=f"p{n}", strength="basic") for n in range(PROMPTS)),
        conditions=tuple(Condition(name=f"noise{n}", chain=(step,)) for n, step in enumerate(noise)),
        scorers=(),
    )


def resume(*, trials: int = 1_000_000) -> list[Figure]:
    """The resume scan of a store that was never compacted, its parts in the page cache."""
    with tempfile.TemporaryDirectory() as name:
        fill(Store.open(f"{name}/store"), trials)
        began_s = time.perf_counter()
        progress = Store.open(f"{name}/store").progress()
        seconds = time.perf_counter() - began_s
    assert len(progress.done) == trials
    return [Figure(name=f"resume_scan_{trials // 1000}k_trials_s", value=seconds, goal=10, better="lower")]


def fill(store: Store, trials: int) -> None:
    """Finished trials in parts of 256: one real group of rows, over and over under other trial ids.

    Not synced to the disk one by one, as a sweep does, which would take longer than all of the measuring.
    """
    spec, task = model(), Questions(count=GROUP_ROWS)
    made = farm.plan.make(
        Sweep(models=(spec,), tasks=(task,), prompts=(PLAIN,), conditions=(CLEAN,), scorers=())
    )
    rows = [_finished(made, trial) for trial in made.todo(spec, Progress())]
    group, names = to_table("replies", rows), to_table("replies", rows).column_names
    folder = parts.partition_folder("replies", rows[0])
    Path(store.url, folder).mkdir(parents=True)
    for start in range(0, trials, GROUP_ROWS):
        count = min(GROUP_ROWS, trials - start)
        part = group.slice(0, count)
        part = part.set_column(
            names.index("trial_id"), "trial_id", pa.array([os.urandom(16).hex() for _ in range(count)])
        )
        written = pa.array(range(start + 1, start + count + 1), pa.int64())
        part = part.set_column(names.index("written_ns"), "written_ns", written)
        Path(store.url, parts.new_part_uri(folder, start + count)).write_bytes(parts.part_bytes(part))


def _finished(made: Plan, trial: Trial) -> dict[str, object]:
    outcome = Outcome(
        trial_id=trial.trial_id,
        attempt=1,
        reply=Reply(text="I am sorry to hear that. " * 8, tokens_in=300, tokens_out=50),
        heard_seconds=4.2,
        seconds=0.7,
        batch_size=8,
        worker="sleeper-1",
        started_at="2026-01-01T00:00:00.000+00:00",
        environment="0" * 32,
    )
    return reply_row(made, trial, outcome)
