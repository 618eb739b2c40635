"""Which checkpoints there are to test: of a local folder, a hub branch, or an MLflow registered model.

Invariant: a checkpoint is known by its bytes (a folder's SHA-256) or its commit, never by its name, size or date; a
folder counts only when it is whole and has been quiet for a while. Nothing here loads a model or writes anything.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farm.digests import folder_digest

DONE = "DONE"
"""A file of this name says that a checkpoint is whole, however young it is."""
UNFINISHED = ("*.tmp", "*.part", "*.partial", "*.incomplete", "*.lock")
SOURCES = ("folder", "repo", "registered_model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A checkpoint that could be tested."""

    name: str
    """`checkpoint-1200`, `org/model@9f3c1ab`."""
    fingerprint: str
    """SHA-256 of all bytes, or the commit."""
    place: Mapping[str, Any]
    """What an adapter's `checkpoint` is replaced by: `{path}`, or `{repo, revision}`."""
    step: int | None = None
    """The number in its name: charts are drawn over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a source holds."""

    candidates: tuple[Candidate, ...]
    """In the order of their steps, then names; of two with the same bytes the first alone."""
    waiting: tuple[str, ...] = ()
    """What is not ready yet, and why."""


def discover(source: Mapping[str, Any]) -> Found:
    """Looks at a source.

    Args:
        source: `{folder, quiet_minutes}`, `{repo, branch}` or `{registered_model, tracking_uri}`.

    Raises:
        ValueError: the source has another shape, or cannot be looked at.
    """
    chosen = [name for name in SOURCES if source.get(name)]
    if len(chosen) != 1:
        raise ValueError(f"retest.source: exactly one of {', '.join(SOURCES)}, not {dict(source)}")
    if chosen == ["folder"]:
        return in_folder(Path(str(source["folder"])), 60 * float(source.get("quiet_minutes", 5)))
    if chosen == ["repo"]:
        return Found(candidates=(on_hub(str(source["repo"]), str(source.get("branch") or "main")),))
    return registered(str(source["registered_model"]), source.get("tracking_uri"))


# --- a folder ------------------------------------------------------------------------------------------------------


def in_folder(folder: Path, quiet_s: float) -> Found:
    """Every sub-folder that is a whole checkpoint.

    Raises:
        ValueError: no such folder.
    """
    folder = folder.expanduser()
    if not folder.is_dir():
        raise ValueError(f"retest.source.folder={folder}: no such folder")
    candidates: dict[str, Candidate] = {}
    waiting = []
    for path in sorted(
        (p for p in folder.iterdir() if p.is_dir()), key=lambda p: (step(p.name) or 0, p.name)
    ):
        if why := unready(path, quiet_s):
            waiting.append(f"{path.name}: {why}")
            continue
        digest = folder_digest(path)
        made = Candidate(name=path.name, fingerprint=digest, place={"path": str(path)}, step=step(path.name))
        candidates.setdefault(digest, made)
    return Found(candidates=tuple(candidates.values()), waiting=tuple(waiting))


def unready(folder: Path, quiet_s: float) -> str:
    """Why a checkpoint's folder cannot be tested yet; empty where it can."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    if not any(path.name == "config.json" for path in files):
        return "no config.json"
    if lacking := list(_lacking_shards(files)):
        return f"{len(lacking)} shards of its index are missing: {lacking[0]} ..."
    if half := [path for path in files if any(path.match(pattern) for pattern in UNFINISHED)]:
        return f"still being written: {half[0].relative_to(folder)}"
    age_s = time.time() - max(path.stat().st_mtime for path in files)
    if age_s < quiet_s and not (folder / DONE).exists():
        return f"changed {age_s:.0f} s ago; quiet for {quiet_s:g} s is asked for"
    return ""


def _lacking_shards(files: Sequence[Path]) -> Iterator[str]:
    for index in (path for path in files if path.name.endswith(".index.json")):
        try:
            shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (json.JSONDecodeError, KeyError, AttributeError):
            yield f"{index.name} (no index yet)"
            continue
        yield from sorted(shard for shard in shards if not (index.parent / str(shard)).is_file())


def step(name: str) -> int | None:
    """The last number in a checkpoint's name."""
    numbers = re.findall(r"\d+", name)
    return int(numbers[-1]) if numbers else None


# --- elsewhere -----------------------------------------------------------------------------------------------------


def on_hub(repo: str, branch: str) -> Candidate:
    """What a branch of a hub repository points at.

    Raises:
        ValueError: the hub cannot be asked or does not know it.
    """
    import httpx2
    from huggingface_hub import HfApi

    try:
        sha = HfApi().model_info(repo, revision=branch).sha
    except (OSError, httpx2.HTTPError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(f"{repo}@{branch} cannot be looked up: {said[0]}") from error
    if not sha:
        raise ValueError(f"{repo}@{branch}: the hub named no commit")
    return Candidate(name=f"{repo}@{sha[:7]}", fingerprint=sha, place={"repo": repo, "revision": sha})


def registered(name: str, tracking_uri: str | None) -> Found:
    """Every version of an MLflow registered model whose source is `hf://repo@commit` or a folder of this machine.

    Raises:
        ValueError: no such model.
    """
    from mlflow import MlflowClient

    versions = MlflowClient(tracking_uri=tracking_uri).search_model_versions(f"name = '{name}'")
    if not versions:
        raise ValueError(f"retest.source.registered_model={name}: no such model, or no version of it")
    candidates, waiting = [], []
    for version in sorted(versions, key=lambda v: int(v.version)):
        label, place = f"{name} v{version.version}", str(version.source)
        if found := re.fullmatch(r"hf://(.+)@([0-9a-f]{7,40})", place):
            checkpoint = {"repo": found[1], "revision": found[2]}
            candidates.append(
                Candidate(name=label, fingerprint=found[2], place=checkpoint, step=int(version.version))
            )
        elif (path := Path(place.removeprefix("file://").removeprefix("ckpt://"))).is_dir():
            digest = folder_digest(path)
            candidates.append(
                Candidate(
                    name=label, fingerprint=digest, place={"path": str(path)}, step=int(version.version)
                )
            )
        else:
            waiting.append(f"{label}: its source {place} is neither hf://repo@commit nor a folder here")
    return Found(candidates=tuple(candidates), waiting=tuple(waiting))
