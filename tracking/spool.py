"""Run updates on their way to MLflow, on disk: the only queue there is, so that nothing depends on MLflow being there.

Invariant: an update is a folder, written under a temporary name and renamed, so it is there whole or not at all; it is
removed only after MLflow has taken it. A sweep that is killed leaves its updates to the next one.

    <spool>/<sequence>-<key>/update.json, files/...      waiting
    <spool>/rejected/...                                 refused by MLflow for good, with the reason in rejected.txt
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

REJECTED = "rejected"
LEFTOVER_AGE_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUpdate:
    """What one MLflow run is to become."""

    key: str
    """Of two waiting updates with one key only the newer counts."""
    experiment: str
    identity: Mapping[str, str]
    """The tags by which the run is found again."""
    name: str
    tags: Mapping[str, str]
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    status: str = "RUNNING"
    """`RUNNING`, `FINISHED`, `KILLED` (trials are missing) or `FAILED` (every trial failed)."""
    time_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    experiment_tags: Mapping[str, str] = field(default_factory=dict)
    replaces: tuple[str, ...] = ()
    """Artifact folders of which older files are removed first."""


class Spool:
    """A folder of waiting updates; one process at a time takes from it, any may add."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._lock: IO[str] | None = None
        self._sequence = 0

    def put(self, update: RunUpdate, files: Mapping[str, bytes]) -> None:
        """Adds an update with its artifacts (path below the run's artifact root -> content)."""
        self._sequence += 1
        name = f"{time.time_ns():020d}.{os.getpid()}.{self._sequence:06d}-{update.key}"
        temporary = self.folder / f".{name}"
        (temporary / "files").mkdir(parents=True)
        for path, content in files.items():
            target = temporary / "files" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        (temporary / "update.json").write_text(json.dumps(asdict(update), ensure_ascii=False))
        temporary.rename(self.folder / name)

    def waiting(self) -> list[Path]:
        """The updates that wait, oldest first."""
        return sorted(p for p in self.folder.iterdir() if "-" in p.name and not p.name.startswith("."))

    def drop_superseded(self) -> None:
        """Removes updates that a newer one of the same key makes needless; only for the process that takes."""
        newest: dict[str, Path] = {}
        for entry in self.waiting():
            key = entry.name.split("-", 1)[1]
            if key in newest:
                self.done(newest[key])
            newest[key] = entry

    def done(self, entry: Path) -> None:
        """Removes an update that MLflow has taken (or need not take)."""
        hidden = entry.with_name(f".{entry.name}")
        entry.rename(hidden)
        shutil.rmtree(hidden)

    def reject(self, entry: Path, reason: str) -> None:
        """MLflow will never take it: kept apart, with the reason."""
        folder = self.folder / REJECTED
        folder.mkdir(exist_ok=True)
        (entry / "rejected.txt").write_text(reason)
        entry.rename(folder / entry.name)

    def acquire(self) -> bool:
        """Becomes the one process that takes updates, if no other is."""
        if self._lock:
            return True
        handle = (self.folder / ".lock").open("w")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            return False
        self._lock = handle
        self._sweep_up()
        return True

    def _sweep_up(self) -> None:
        """Removes what a killed process left half written or half removed."""
        for entry in self.folder.glob(".*-*"):
            # The driver's thread may rename what it is writing into place between the listing and this line.
            if _age_s(entry) > LEFTOVER_AGE_S:
                shutil.rmtree(entry)

    def release(self) -> None:
        """Lets another process take updates."""
        if self._lock:
            self._lock.close()
            self._lock = None


def _age_s(entry: Path) -> float:
    """Seconds since an entry was written; 0 where it has just been renamed."""
    try:
        return time.time() - entry.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def read(entry: Path) -> RunUpdate:
    """The update in a waiting folder."""
    raw: dict[str, Any] = json.loads((entry / "update.json").read_text())
    return RunUpdate(**{**raw, "replaces": tuple(raw["replaces"])})
