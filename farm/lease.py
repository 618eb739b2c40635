"""One driver a store: a lease with a heartbeat, as numbered files of which the highest counts.

Invariant: the highest number is never removed, and a higher one is made only (exclusively, so by one taker) when the
highest is released or stale. Who finds a higher number than its own has lost the lease, however long it slept.

Limits: on object stores without conditional puts (`fsspec`'s `mode="create"`) two takers in the same instant may both
believe that they hold it until the first heartbeat. Even then no row is lost or counted twice: parts are never
overwritten, and the views count a trial once.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from farm.files import Files, StoreError
from farm.store import Store

FOLDER = "lease"
_HELD, _RELEASED = ".json", ".released"
_TRIES = 10


class StoreBusy(ValueError):
    """Another driver holds the store; names it."""


class LeaseLost(StoreError):
    """This driver does not hold the store any more, and must not write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a lease."""

    owner: str
    host: str
    machine: str
    """Tells machines and containers apart where a process id means something: host, boot, process namespace."""
    pid: int
    started: str
    """The process's start, so that a reused process id is not taken for it."""
    since: str
    """ISO 8601, UTC."""

    def __str__(self) -> str:
        return f"{self.owner} (host {self.host}, pid {self.pid}, since {self.since})"


@dataclass(frozen=True, slots=True)
class _Found:
    """A lease file."""

    number: int
    released: bool
    uri: str


class Lease:
    """A lease that is held, with its heartbeat."""

    def __init__(self, store: Store, holder: Holder, number: int, heartbeat_s: float, stale_s: float) -> None:
        self.holder = holder
        self.lost = ""
        """Why it is lost; empty while it is held."""
        self._store, self._number = store, number
        self._heartbeat_s, self._stale_s = heartbeat_s, stale_s
        self._uri = _uri(number, _HELD)
        self._last_beat = time.time()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Returns while the lease is held.

        A heartbeat that is overdue (the process was stopped, the machine slept) is made up for first, so that a driver
        that wakes up finds out before it writes.

        Raises:
            LeaseLost: another driver took it over, or no heartbeat could be written for `stale_s`.
        """
        if not self.lost and abs(time.time() - self._last_beat) > 2 * self._heartbeat_s:
            self.beat()
        if self.lost:
            raise LeaseLost(f"{self._store.url}: lease lost: {self.lost}. What was written so far is kept")

    def beat(self) -> None:
        """Renews the lease, or notes that it is lost."""
        files = self._store.files
        try:
            last = _last(files)
            if last and last.number > self._number:
                self.lost = f"taken over by {_read(files, last) or 'another driver'}"
                return
            files.touch(self._uri, _dump(self.holder))
        except (StoreError, FileNotFoundError) as error:
            if time.time() - self._last_beat > self._stale_s or isinstance(error, FileNotFoundError):
                self.lost = f"no heartbeat could be written: {error}"
            return
        self._last_beat = time.time()

    def _run(self) -> None:
        while not self.lost and not self._stop.wait(self._heartbeat_s):
            self.beat()

    def release(self) -> None:
        """Ends the heartbeat and gives the store free for the next driver."""
        self._stop.set()
        self._thread.join()
        if not self.lost:
            try:
                self._store.files.move(self._uri, _uri(self._number, _RELEASED))
            except FileNotFoundError:
                self.lost = "the lease file is gone"


@contextmanager
def hold(store: Store, owner: str, heartbeat_s: float = 5.0, stale_s: float = 30.0) -> Iterator[Lease]:
    """Holds a store's lease; every write of rows checks it meanwhile (`store.guard`).

    Args:
        store: which store.
        owner: what to call this driver to others.
        heartbeat_s: seconds between two heartbeats.
        stale_s: seconds without a heartbeat after which others may take over; the same for all drivers of a store.

    Raises:
        StoreBusy: another driver holds it; a ValueError that names host, process and since when.
        StoreError: the store is full, read-only or gone.
    """
    holder = _me(owner)
    number = _take(store, holder, stale_s)
    lease = Lease(store, holder, number, heartbeat_s, stale_s)
    store.guard, before = lease.check, store.guard
    try:
        yield lease
    finally:
        store.guard = before
        lease.release()


def _take(store: Store, holder: Holder, stale_s: float) -> int:
    files = store.files
    for _ in range(_TRIES):
        last = _last(files)
        if last and not last.released and (busy := _alive(files, last, stale_s)):
            raise StoreBusy(
                f"store {store.url} is in use by {busy}; wait for it to end, stop it, or choose another store"
            )
        number = last.number + 1 if last else 1
        if not files.create(_uri(number, _HELD), _dump(holder)):
            continue
        highest = _last(files)
        if highest and highest.number == number:
            _forget(files, number)
            return number
        # What was seen as the last lease was old news: a number above has been given since.
        files.remove(_uri(number, _HELD))
    raise StoreBusy(f"store {store.url}: other drivers take and release it all the time; try again")


def _uri(number: int, suffix: str) -> str:
    return f"{FOLDER}/{number:08d}{suffix}"


def _all(files: Files) -> list[_Found]:
    found = []
    for entry in files.list(FOLDER):
        name = entry.uri.rsplit("/", 1)[-1]
        stem, _, suffix = name.partition(".")
        if stem.isdecimal() and f".{suffix}" in (_HELD, _RELEASED):
            found.append(_Found(int(stem), f".{suffix}" == _RELEASED, entry.uri))
    return sorted(found, key=lambda lease: (lease.number, lease.released))


def _last(files: Files) -> _Found | None:
    return next(reversed(_all(files)), None)


def _forget(files: Files, number: int) -> None:
    for lease in _all(files):
        if lease.number < number:
            files.remove(lease.uri)


def _alive(files: Files, lease: _Found, stale_s: float) -> str:
    """The holder's name while its lease is good, else nothing."""
    try:
        holder = _read(files, lease)
        age_s = files.age_s(lease.uri)
    except FileNotFoundError:  # released or replaced since it was listed
        return ""
    if age_s > stale_s or (holder and holder.machine == _machine() and not _runs(holder)):
        return ""
    return str(holder or "an unknown driver")


def _read(files: Files, lease: _Found) -> Holder | None:
    try:
        return Holder(**json.loads(files.read(lease.uri)))
    except (ValueError, TypeError):  # not whole: its driver was killed on a file system without hard links
        return None


def _dump(holder: Holder) -> bytes:
    return json.dumps(asdict(holder), indent=1).encode()


def _me(owner: str) -> Holder:
    pid = os.getpid()
    since = datetime.now(UTC).isoformat(timespec="seconds")
    host, machine, started = socket.gethostname(), _machine(), _process(pid)[1]
    return Holder(owner=owner, host=host, machine=machine, pid=pid, started=started, since=since)


def _machine() -> str:
    boot, namespace = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    known = [boot.read_text().strip(), os.readlink(namespace)] if boot.exists() and namespace.exists() else []
    return " ".join([socket.gethostname(), *known])


def _process(pid: int) -> tuple[str, str]:
    """State and start time of a process (`man 5 proc`, stat fields 3 and 22); empty where /proc has none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "", ""
    fields = stat.rpartition(")")[2].split()
    return fields[0], fields[19]


def _runs(holder: Holder) -> bool:
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    state, started = _process(holder.pid)
    return state not in ("Z", "X") and started == holder.started
