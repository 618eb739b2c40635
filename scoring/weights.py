"""What the parts of a scorer weigh: fingerprints of every checkpoint in its settings, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from farm import ids
from farm.checkpoints import local
from farm.digests import file_digest, folder_digest


def fingerprint(settings: Any) -> str:
    """Digest over all checkpoints in a tree of settings; empty where one is missing or unpinned."""
    if missing(settings):
        return ""
    return ids.digest([_fingerprint(checkpoint) for checkpoint in _checkpoints(settings)])


def missing(settings: Any) -> str:
    """Why a checkpoint of these settings cannot be had, with what brings it; empty where all are there."""
    for checkpoint in _checkpoints(settings):
        if "path" in checkpoint:
            try:
                local(checkpoint)
            except ValueError as error:
                return str(error)
        elif not checkpoint.get("revision"):
            return f"{checkpoint.get('repo')} has no revision: name a commit, or a local path"
    return ""


def _checkpoints(settings: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(settings, Mapping):
        return
    for key, value in sorted(settings.items()):
        if key == "checkpoint":
            yield value
        else:
            yield from _checkpoints(value)


def _fingerprint(checkpoint: Mapping[str, Any]) -> str:
    if "path" not in checkpoint:
        return f"{checkpoint['repo']}@{checkpoint['revision']}"
    path = local(checkpoint)
    return folder_digest(path) if path.is_dir() else file_digest(path)
