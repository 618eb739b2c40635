import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scripts.fetch_weights import SOURCES, Source, main

CONTENT = b"weights" * 1000


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """Address of a server on loopback that has `net.bin`."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "net.bin").write_bytes(CONTENT)
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def source(url: str, sha256: str = hashlib.sha256(CONTENT).hexdigest()) -> dict[str, Source]:
    return {"net": Source(file="net.bin", licence="CC BY-NC-SA 4.0", url=url, sha256=sha256)}


def test_a_file_is_fetched_checked_and_its_licence_named(
    served: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "deep" / "weights"
    assert main(["net", "--to", str(folder)], source(f"{served}/net.bin")) == 0
    assert (folder / "net.bin").read_bytes() == CONTENT
    assert [path.name for path in folder.iterdir()] == ["net.bin"]
    assert "CC BY-NC-SA 4.0" in capsys.readouterr().out


def test_a_file_that_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "net.bin").write_bytes(CONTENT)
    assert main(["net", "--to", str(tmp_path)], source("http://127.0.0.1:9/net.bin")) == 0


@pytest.mark.parametrize("path", ["net.bin", "absent.bin"])
def test_a_wrong_or_absent_file_leaves_nothing_behind(
    served: str, tmp_path: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "weights"
    assert main(["net", "--to", str(folder)], source(f"{served}/{path}", sha256="0" * 64)) == 1
    assert list(folder.iterdir()) == []
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_damaged_file_on_disk_is_reported_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "net.bin").write_bytes(b"half")
    assert main(["net", "--to", str(tmp_path)], source("http://127.0.0.1:9/net.bin")) == 1
    assert "remove it" in capsys.readouterr().err
    assert (tmp_path / "net.bin").read_bytes() == b"half"


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/net.bin", "hub:owner/name"])
def test_offline_is_one_line_and_status_one(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert main(["net", "--to", str(tmp_path)], source(url)) == 1
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1 and "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_is_refused_with_the_valid_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["nisqua"])
    assert refused.value.code == 2
    error = capsys.readouterr().err
    assert all(name in error for name in SOURCES)
