"""What `make demo-retest` does: real Whisper checkpoints, word errors over twelve scripts, a verdict on each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.config import ROOT
from tests.checkpoints import demo_weights

pytestmark = pytest.mark.skipif(
    not (ROOT / "weights" / "whisper-normalizer").exists(),
    reason="no demo weights; python scripts/fetch_demo_weights.py",
)


def make(folder: Path, kind: str, step: int) -> None:
    command = [
        sys.executable,
        "scripts/demo_checkpoints.py",
        kind,
        "--folder",
        folder / "checkpoints",
        "--step",
        str(step),
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def retest(folder: Path) -> tuple[int, str]:
    suite = ["task=[echomind.asr]", "scorer=[wer]", "condition=[clean]", "repeats=1", "retest.canary_items=3"]
    places = [
        f"store={folder}/store",
        f"retest.out={folder}/out",
        f"hydra.run.dir={folder}/hydra",
        "tracking=off",
    ]
    found = ["retest=cascade_folder", f"retest.source.folder={folder}/checkpoints"]
    done = subprocess.run(
        [sys.executable, "jobs/retest.py", *found, *suite, *places],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.timeout(900)
def test_copy_is_recognised_another_dtype_is_no_difference_and_damage_is_worse(tmp_path: Path) -> None:
    demo_weights("whisper-tiny.en-ct2")
    make(tmp_path, "original", 1)
    make(tmp_path, "copy", 2)
    status, out = retest(tmp_path)
    assert status == 0 and "it is the baseline" in out, out
    assert "step-2-copy" not in out
    make(tmp_path, "dtype", 3)
    status, out = retest(tmp_path)
    assert status == 0 and "# step-3-dtype: no difference" in out, out
    make(tmp_path, "damaged", 4)
    status, out = retest(tmp_path)
    assert status == 4 and "# step-4-damaged: worse" in out, out
    assert "step-3-dtype: tested already" in out
