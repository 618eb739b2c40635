"""The doctor looks, says what it sees and what mends it, and never fails itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import doctor
from jobs.config import ROOT


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "jobs/doctor.py", *arguments], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_every_line_has_a_state_and_a_problem_its_command(tmp_path: Path) -> None:
    done = run(f"store={tmp_path}/store")
    assert "Traceback" not in done.stderr
    lines = done.stdout.splitlines()
    assert {line.split()[0] for line in lines} <= {"ok", "optional", "problem"}
    for what in (
        "python",
        "torch",
        "audio: soundfile",
        "weights: piper-joe",
        "mlflow",
        "ray auth",
        "disk",
        "clock",
    ):
        assert any(f" {what}: " in line for line in lines), what
    assert all("->" in line for line in lines if line.startswith("problem"))
    assert done.returncode == (1 if any(line.startswith("problem") for line in lines) else 0)


def test_a_server_that_is_away_is_a_problem_and_its_password_is_not_printed() -> None:
    done = run(MLFLOW_TRACKING_URI="http://me:secret@127.0.0.1:9")
    assert done.returncode == 1
    assert "secret" not in done.stdout + done.stderr and "127.0.0.1:9" in done.stdout


def test_a_full_disk_and_a_long_temporary_folder_are_problems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(doctor, "FREE_GB", 1e9)
    assert next(doctor.disk(str(tmp_path / "not" / "yet"))).state == "problem"
    monkeypatch.setattr(doctor, "LONGEST_TEMP", 3)
    assert next(doctor.temporary_folder()).mend == "export TMPDIR=/tmp"


def test_an_unknown_setting_is_refused() -> None:
    done = run("stores=x")
    assert done.returncode == 2 and "settings are store=..." in done.stderr
