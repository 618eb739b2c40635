"""A small result store in memory, with FLAC speech, and a server to log to."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import soundfile

from farm.records import CellRecord
from tests.farm.cells import ACCURACY, MOS, failed, record, replies_table, reply, score, scores_table


class MemoryStore:
    """What the projection reads of a store."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.reply_rows: list[Mapping[str, Any]] = []
        self.score_rows: list[Mapping[str, Any]] = []

    def replies(
        self, *, benchmark: Any = None, columns: Sequence[str] | None = None, cell_ids: Any = None
    ) -> pa.Table:
        return _chosen(replies_table(self.reply_rows), columns, cell_ids)

    def scores(
        self, *, benchmark: Any = None, columns: Sequence[str] | None = None, cell_ids: Any = None
    ) -> pa.Table:
        return _chosen(scores_table(self.score_rows), columns, cell_ids)

    def get(self, uri: str) -> bytes:
        return self.files[uri]

    def add_cell(self, cell: CellRecord, trials: int = 4) -> None:
        """A cell of which the last trial failed, and trial k scores 1 + k / 10."""
        self.files[cell.uri] = cell.dump()
        for k in range(trials):
            trial, item = f"{cell.cell_id}-t{k}", f"item {k}"
            if k == trials - 1:
                self.reply_rows.append(failed(trial, item, f"u{k}", cell_id=cell.cell_id))
                continue
            self.reply_rows.append(reply(trial, item, f"u{k}", cell_id=cell.cell_id))
            self.score_rows.append(score(trial, MOS, 1 + k / 10, cell_id=cell.cell_id))
            self.score_rows.append(score(trial, ACCURACY, float(k % 2), cell_id=cell.cell_id))
            self.files[f"speech/{trial}.flac"] = tone()


def _chosen(table: pa.Table, columns: Sequence[str] | None, cell_ids: Any) -> pa.Table:
    if cell_ids is not None:
        table = table.filter(pc.is_in(table["cell_id"], pa.array(list(cell_ids))))
    return table.select(columns) if columns else table


def tone() -> bytes:
    out = io.BytesIO()
    wave = 0.1 * np.sin(2 * np.pi * 440 * np.arange(8000) / 16000)
    soundfile.write(out, wave.astype(np.float32), 16000, format="FLAC")
    return out.getvalue()


def small_store(cells: int = 2) -> MemoryStore:
    store = MemoryStore()
    for n in range(cells):
        condition = "clean" if n == 0 else f"white_{10 * n}db"
        store.add_cell(
            record(f"c{n}", condition=condition, condition_parameters={"snr_db": 10 * n} if n else {})
        )
    return store


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve(folder: Path, port: int, *options: str) -> subprocess.Popen[bytes]:
    """A real MLflow server on a database in `folder`; returns once it answers."""
    command = [
        *(
            sys.executable,
            "-m",
            "mlflow",
            "server",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--workers",
            "1",
        ),
        *("--backend-store-uri", f"sqlite:///{folder}/server.db", *options),
    ]
    quiet = {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
    }
    log = (folder / "server.log").open("ab")
    process = subprocess.Popen(
        command, stdout=log, stderr=log, env={**os.environ, **quiet}, cwd=folder, start_new_session=True
    )
    for _ in range(240):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1):
                return process
        except OSError:
            assert process.poll() is None, (folder / "server.log").read_text()[-2000:]
            time.sleep(0.25)
    raise AssertionError("the server did not come up within a minute")


def end(process: subprocess.Popen[bytes], signal_number: int) -> None:
    """Ends the server with its worker: they have a process group of their own."""
    if process.poll() is None:
        os.killpg(process.pid, signal_number)
    process.wait(timeout=30)
