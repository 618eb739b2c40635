"""Retests as a person starts them: a stand-in model whose checkpoint says how noisy it is, and a real sweep each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree import ElementTree

import pytest

from jobs.config import ROOT
from jobs.telling import junit, markdown, post


def checkpoint(folder: Path, noise: float, **told: float) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"noise": noise, **told}))


def retest(folder: Path, *settings: str) -> tuple[int, str]:
    places = [f"store={folder}/store", f"hydra.run.dir={folder}/hydra", f"retest.out={folder}/out"]
    suite = [
        "model=[echo]",
        "prompt=[p1]",
        "condition=[clean]",
        "scorer=[floor]",
        "repeats=1",
        "tracking=off",
    ]
    found = ["retest=echo", f"retest.source.folder={folder}/checkpoints"]
    search = f"hydra.searchpath=[file://{ROOT}/tests/jobs/conf]"
    command = [sys.executable, "jobs/retest.py", search, *found, *suite, *places, *settings]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.timeout(600)
def test_a_folder_of_checkpoints_is_tested_one_by_one_and_never_twice(tmp_path: Path) -> None:
    """Baseline, a copy, a harmless change, a damage: nothing new, no difference, worse; then nothing is left to do."""
    checkpoint(tmp_path / "checkpoints" / "step-100", 0.0)
    status, out = retest(tmp_path)
    assert status == 0 and "it is the baseline" in out, out
    checkpoint(tmp_path / "checkpoints" / "step-200", 0.0)
    checkpoint(tmp_path / "checkpoints" / "step-300", 1e-5)
    status, out = retest(tmp_path)
    assert status == 0, out
    assert "step-100: tested already" in out and "step-200" not in out
    assert "# step-300: no difference" in out
    checkpoint(tmp_path / "checkpoints" / "step-400", 0.1)
    status, out = retest(tmp_path)
    assert status == 4, out
    assert "# step-400: worse" in out
    record = json.loads(next((tmp_path / "out").glob("*/retest.json")).read_text())
    assert record["suite"] and len(list((tmp_path / "out").glob("*/retest.xml"))) == 3
    status, out = retest(tmp_path)
    assert status == 0 and "step-400: tested already" in out, out


@pytest.mark.timeout(600)
def test_a_changed_suite_tests_the_baseline_again_before_it_compares(tmp_path: Path) -> None:
    checkpoint(tmp_path / "checkpoints" / "step-1", 0.0)
    assert retest(tmp_path, "retest.canary_items=0")[0] == 0
    checkpoint(tmp_path / "checkpoints" / "step-2", 0.0, more=1)
    status, out = retest(tmp_path, "condition=[telephone]", "retest.canary_items=0")
    assert status == 0, out
    assert "step-1: tested already" not in out
    assert out.index("# step-1: no difference") < out.index("# step-2: no difference")


def test_a_wrong_configuration_is_one_message(tmp_path: Path) -> None:
    status, out = retest(tmp_path)
    assert status == 2 and "no such folder" in out and "Traceback" not in out
    checkpoint(tmp_path / "checkpoints" / "a", 0.0)
    status, out = retest(tmp_path, "retest.baseline=best")
    assert status == 2 and "one of first, last" in out


RECORD = {
    "name": "n", "candidate": "c|<b>", "fingerprint": "f" * 64, "suite": "s" * 64, "baseline": "b", "verdict": "worse",
    "at": "2026", "slices": [],
    "verdicts": [
        {"cell": "t · p1", "metric": "text/wer", "kind": "worse", "reason": "by far"},
        {"cell": "t · p1", "metric": "judge/c4", "kind": "inconclusive", "reason": "too few"},
        {"cell": "t · p1", "metric": "health/failed", "kind": "no difference", "reason": "-"},
    ],
}  # fmt: skip


def test_build_servers_read_failures_and_skips() -> None:
    suite = ElementTree.fromstring(junit(RECORD))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert "| t · p1 | text/wer | worse | by far |" in markdown(RECORD)


@pytest.fixture
def hook() -> Iterator[tuple[str, list[int], list[bytes]]]:
    statuses: list[int] = []
    got: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(statuses.pop(0) if statuses else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", statuses, got
    server.shutdown()


def test_a_webhook_is_tried_a_few_times_and_never_blocks(hook: tuple[str, list[int], list[bytes]]) -> None:
    url, statuses, got = hook
    statuses += [500, 200]
    assert post(url, RECORD, wait_s=0) == "" and len(got) == 2
    statuses += [500, 500, 500]
    assert "webhook not delivered" in post(url, RECORD, wait_s=0) and len(got) == 5
    assert "webhook not delivered" in post("http://127.0.0.1:9", RECORD, wait_s=0)
    assert json.loads(got[0])["retest"]["verdict"] == "worse"
