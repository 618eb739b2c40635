"""What the farm costs, measured on this machine: one line a figure, `name value goal ok|short`.

Invariant: each figure is measured in a process of its own, one after the other, so that none sees another's memory or
workers. Models are stand-ins that sleep (bench/standins.py), but for tiny checkpoints where batching
is measured (bench/model_speed.py); all else is the farm itself.

    python -m bench.farm             # all of them, about five minutes; or: make bench
    python -m bench.farm plan reload
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

from bench import engine_cost, model_speed, planning, tracking_cost
from bench.figures import Figure
from workers.cluster import connect

FIGURES: Mapping[str, Callable[[], list[Figure]]] = {
    "overhead": engine_cost.overhead,
    "scaling": engine_cost.scaling,
    "null": engine_cost.null_model,
    "plan": planning.plan,
    "resume": planning.resume,
    "cells": tracking_cost.cells_per_s,
    "waiting": tracking_cost.waiting_share,
    "reload": engine_cost.reload,
    "qwen2_5_omni": model_speed.qwen2_5_omni,
    "qwen2_audio": model_speed.qwen2_audio,
    "audio_flamingo3": model_speed.audio_flamingo3,
}
"""What can be asked for -> measures one or more figures."""
ON_RAY = frozenset(FIGURES) - {"plan", "resume", "cells"}
"""Those that need a cluster; its start is in no figure."""
RAY_CPUS = 2


def machine() -> str:
    """Processor, cores, load of the last minute, date."""
    info = Path("/proc/cpuinfo")
    names = [
        line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
    ]
    processor = names[0] if names else platform.machine()
    date = datetime.now(UTC).date().isoformat()
    return f"{processor}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {date}"


def measure(name: str) -> list[Figure]:
    """Measures in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(_measure, name).result()


def _measure(name: str) -> list[Figure]:
    # Ray reports the death of a worker on stdout, which is for figures.
    with redirect_stdout(sys.stderr), connect(num_cpus=RAY_CPUS) if name in ON_RAY else nullcontext():
        return FIGURES[name]()


def main(arguments: Sequence[str]) -> int:
    """Prints the figures asked for, or all; the machine goes to stderr."""
    parser = argparse.ArgumentParser(prog="python -m bench.farm", description="What the farm costs.")
    parser.add_argument("names", nargs="*", choices=[*FIGURES, []], metavar="name", help=", ".join(FIGURES))
    names = parser.parse_args(arguments).names or list(FIGURES)
    print(machine(), file=sys.stderr)
    for name in names:
        for figure in measure(name):
            print(figure, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
