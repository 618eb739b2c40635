"""Where runs go: a tracking URI made absolute, its artifacts folder, and SQLite set to write-ahead logging.

Invariant: light to import; no MLflow here.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

SQLITE = "sqlite:///"
UI_URL = "http://127.0.0.1:5000"
"""Where `make ui` shows a database of this machine."""
BUSY_S = 20.0
"""How long another program may hold the database before it counts as away."""


def sqlite_path(uri: str) -> Path | None:
    """The database file of a `sqlite:///` URI, absolute; None for any other URI."""
    return Path(uri.removeprefix(SQLITE)).expanduser().resolve() if uri.startswith(SQLITE) else None


def absolute(uri: str) -> str:
    """The URI, a relative SQLite path resolved against the current folder."""
    path = sqlite_path(uri)
    return f"{SQLITE}{path}" if path else uri


def artifacts_folder(uri: str) -> Path | None:
    """`mlartifacts` beside a SQLite file; None where a server decides."""
    path = sqlite_path(uri)
    return path.parent / "mlartifacts" if path else None


def ui_url(uri: str) -> str:
    """Where a browser sees what is logged to this URI."""
    return uri.rstrip("/") if uri.startswith("http") else UI_URL


def prepare(uri: str) -> None:
    """Sets a SQLite file to write-ahead logging, once for ever, so that the UI reads while a sweep writes."""
    path = sqlite_path(uri)
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, timeout=BUSY_S)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
