"""Ray for one sweep: a cluster of this machine's own, or one that runs already.

Invariant: a cluster that is started here ends here, and no other Ray process of this machine is touched. A cluster of
our own is reached with a random token only, which this process and its workers hold; a running one is joined with
whatever token its users have (`~/.ray/auth_token`, `RAY_AUTH_TOKEN`, `RAY_AUTH_MODE=disabled`).
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import ray

OWN = "speechfarm-own"
"""Namespace of a cluster that was started here: no node will ever join it."""
JOINED = "speechfarm"
OBJECT_STORE_BYTES = 128 * 2**20
"""No audio goes through the object store; small batches and their results are all it holds."""
MIN_CPUS = 2
KNOCK_S = 10.0


class NoClusterError(ValueError):
    """The cluster that was named cannot be reached."""


@contextmanager
def connect(
    address: str | None = None,
    *,
    num_cpus: float | None = None,
    num_gpus: float | None = None,
    temp_dir: str | None = None,
) -> Iterator[None]:
    """Connects this process to Ray within the block.

    Args:
        address: of a running cluster (`auto`, `host:port`); None starts one on this machine, for this process alone.
        num_cpus: what a cluster of our own offers; None is all cores, at least 2.
        num_gpus: the same of GPUs; None is all that are visible.
        temp_dir: where a cluster of our own keeps its sockets and logs; short, since a socket's path has at most 107
            bytes. None is a new folder that is removed at the end.

    Raises:
        NoClusterError: a running cluster cannot be reached.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    folder = temp_dir or (tempfile.mkdtemp(prefix="sf-") if address is None else None)
    try:
        with _handlers_kept():
            _start(num_cpus, num_gpus, folder) if address is None else _join(address)
        yield
    finally:
        with _handlers_kept():
            ray.shutdown()
        if folder and not temp_dir:
            shutil.rmtree(folder, ignore_errors=True)


def can_grow() -> bool:
    """Whether nodes may join the cluster that this process is connected to."""
    return bool(ray.get_runtime_context().namespace != OWN)


def _start(num_cpus: float | None, num_gpus: float | None, folder: str | None) -> None:
    # Ray turns token authentication on where RAY_AUTH_MODE is unset; with a token in the environment it writes none
    # into the home directory.
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    ray.init(
        address="local",
        namespace=OWN,
        num_cpus=num_cpus or max(MIN_CPUS, os.cpu_count() or 1),
        num_gpus=num_gpus,
        _temp_dir=folder,
        object_store_memory=OBJECT_STORE_BYTES,
        include_dashboard=False,
        **_QUIET,
    )


def _join(address: str) -> None:
    try:
        _knock(address)
        ray.init(address=address, namespace=JOINED, **_QUIET)
    except (OSError, RuntimeError, ray.exceptions.RayError) as error:
        first_line = str(error).split("\n")[0]
        raise NoClusterError(f"cluster.address={address}: no Ray cluster to join ({first_line})") from error


def _knock(address: str) -> None:
    """Ray itself tries for two minutes to reach an address where nothing is.

    Raises:
        OSError: nothing listens there.
    """
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S).close()


_QUIET: Mapping[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Ray takes over SIGTERM when it starts; whoever watches it already keeps it."""
    try:
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        yield
    finally:
        for number, handler in before.items():
            _restore(number, handler)


def _restore(number: int, handler: Any) -> None:
    try:
        signal.signal(number, handler)
    except ValueError:
        # Not the main thread: Ray has left the handlers alone too.
        return
