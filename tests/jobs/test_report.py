"""The report job on a store that a real sweep with a stand-in model left."""

import subprocess
import sys
from pathlib import Path

from jobs.config import ROOT
from tests.jobs.test_sweep import Job


def report(*settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "jobs/report.py", *settings], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_a_sweeps_store_becomes_a_page(tmp_path: Path) -> None:
    job = Job(tmp_path)
    status, out = job.run("limit=2", "repeats=1", "scorer=[dnsmos]")
    assert status == 0, out
    done = report(f"store={job.store}", f"out={tmp_path}/report", "benchmark=echomind")
    assert done.returncode == 0, done.stderr
    page = Path(done.stdout.strip())
    text = page.read_text()
    for part in ("Leaderboard", "quality/dnsmos_ovrl", "scribe", "white_10db", "Worst replies", "<audio"):
        assert part in text
    assert page.stat().st_size < 5_000_000
    assert len(list((tmp_path / "report" / "audio").iterdir())) >= 1


def test_a_store_or_benchmark_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    missing = report(f"store={tmp_path}/none", f"out={tmp_path}/report")
    assert missing.returncode == 2 and "Traceback" not in missing.stderr
    unknown = report("benchmarks=echomind", "help")
    assert unknown.returncode == 2 and "settings are store=..., benchmark=..." in unknown.stderr
    job = Job(tmp_path)
    assert job.run("limit=1", "repeats=1")[0] == 0
    other = report(f"store={job.store}", f"out={tmp_path}/report", "benchmark=voxeval")
    assert other.returncode == 2 and "benchmark=voxeval: the store has echomind" in other.stderr
