"""Pinning against a stand-in for the hub's API on this machine: the hub itself is asked by nobody's tests."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from jobs.config import ROOT

SHA = "0123456789abcdef0123456789abcdef01234567"
TEXT = """# @package models.mine
# A comment that stays.
adapter:
  checkpoint: {repo: org/known, revision: null}
  other: {checkpoint: {repo: org/known-too, revision: 89abcdef}}
"""


class Hub(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.path.startswith("/api/models/org/known")
        body = json.dumps({"id": "org/known", "sha": SHA} if known else {"error": "Repository not found"})
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if not known:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def pin(conf: Path, endpoint: str, *models: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'scripts')!r}); import pin, pathlib\n"
    code += f"sys.exit(pin.main({list(models)!r}, pathlib.Path({str(conf)!r})))"
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)


def test_every_checkpoint_gets_the_hubs_commit_and_the_rest_of_the_file_stays(
    tmp_path: Path, hub: str
) -> None:
    option = tmp_path / "mine.yaml"
    option.write_text(TEXT)
    done = pin(tmp_path, hub, "mine")
    assert done.returncode == 0, done.stderr
    assert option.read_text() == TEXT.replace("null", SHA).replace("89abcdef}}", SHA + "}}")
    assert f"org/known: null -> {SHA}" in done.stdout


def test_what_the_hub_does_not_know_stays_as_it_was_in_every_file(tmp_path: Path, hub: str) -> None:
    (tmp_path / "mine.yaml").write_text(TEXT)
    (tmp_path / "lost.yaml").write_text(TEXT.replace("org/known,", "org/gone,"))
    done = pin(tmp_path, hub, "mine", "lost")
    assert done.returncode == 1
    assert "org/gone@main cannot be looked up" in done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / "mine.yaml").read_text() == TEXT


def test_a_hub_out_of_reach_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(TEXT)
    done = pin(tmp_path, "http://127.0.0.1:9", "mine")
    assert done.returncode == 1
    assert "cannot be looked up" in done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / "mine.yaml").read_text() == TEXT


def test_an_unknown_model_names_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "local.yaml").write_text("adapter: {checkpoint: {path: here}}\n")
    done = pin(tmp_path, "http://127.0.0.1:9", "nope", "local")
    assert done.returncode == 2
    assert "no model nope; there are local" in done.stderr
    assert "local.yaml names no hub checkpoint" in done.stderr


def test_every_shipped_hub_checkpoint_is_written_as_pin_reads_it() -> None:
    import yaml

    from scripts.pin import CHECKPOINT, CONF

    def repos(node: object) -> int:
        if not isinstance(node, dict):
            return 0
        return ("repo" in node) + sum(repos(value) for value in node.values())

    for path in CONF.rglob("*.yaml"):
        text = path.read_text()
        assert repos(yaml.safe_load(text)) == len(CHECKPOINT.findall(text)), path
