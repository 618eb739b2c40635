"""vLLM's own environment, and programs run in it from tests that do not share it."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from farm.types import Reply, Request
from jobs.config import ROOT

PYTHON = ROOT / ".envs" / "vllm" / "bin" / "python"


def finished() -> bool:
    """Whether `scripts/make_env.py vllm` has come to its end."""
    return (PYTHON.parents[1] / "recipe.json").is_file()


def variables(option: Mapping[str, Any]) -> dict[str, str]:
    """Environment variables of a worker of this option."""
    return {**os.environ, **option["workers"]["env_vars"], "PYTHONPATH": str(ROOT)}


def opinionated(checkpoint: Path, folder: Path) -> Path:
    """A copy of a checkpoint that would sample and penalise, if it were asked how."""
    shutil.copytree(checkpoint, folder)
    path = folder / "generation_config.json"
    settings = json.loads(path.read_text())
    wish = {"do_sample": True, "temperature": 0.2, "top_k": 3, "repetition_penalty": 5.0}
    path.write_text(json.dumps({**settings, **wish}))
    return folder


def engine_replies(
    option: Mapping[str, Any], batches: Sequence[Sequence[Request]], folder: Path, **changes: Any
) -> list[tuple[list[Reply], float]]:
    """What the option's engine answers to each batch, with the ids of its tokens for text, and in how many seconds.

    Args:
        option: As a sweep composes it.
        batches: Answered one after the other by one engine.
        folder: For what goes to and fro.
        changes: Arguments of the adapter, or keys of them.
    """
    adapter = dict(option["adapter"])
    for key, value in changes.items():
        adapter[key] = {**adapter[key], **value} if isinstance(value, dict) else value
    (folder / "asked.pickle").write_bytes(pickle.dumps((adapter, batches)))
    done = subprocess.run(
        [PYTHON, "-m", "tests.vllm.answer", str(folder / "asked.pickle"), str(folder / "answered.pickle")],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=variables(option),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    replies: list[tuple[list[Reply], float]] = pickle.loads((folder / "answered.pickle").read_bytes())
    return replies


def sweep(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The main job, run by this environment's interpreter."""
    command = [sys.executable, "jobs/sweep.py", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
