"""Pins a model's hub checkpoints to commits, in conf/model/MODEL.yaml: `python scripts/pin.py MODEL`.

A sweep takes a hub checkpoint only at a commit, since replies of weights that may change cannot be compared. Run it
again to move on to a newer commit.

Invariant: a revision is what the hub says, never made up; a file is replaced whole or left as it is, its comments kept.
Exit status: 0 all pinned, 1 the hub could not be asked (then nothing is written), 2 no such model, or none to pin.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

CONF = Path(__file__).resolve().parents[1] / "conf" / "model"
CHECKPOINT = re.compile(r"\{repo: (?P<repo>[^,}\s]+), revision: (?P<revision>[^,}\s]+)\}")
"""As every option writes a hub checkpoint."""


class HubError(Exception):
    """The hub gave no commit; the message says for which repository and why."""


def main(arguments: Sequence[str] | None = None, conf: Path = CONF) -> int:
    """Pins every named model; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", metavar="MODEL", nargs="+", help="a file of conf/model/, without .yaml")
    parser.add_argument("--revision", default="main", help="branch or tag whose commit is taken (main)")
    chosen = parser.parse_args(arguments)
    if problems := [p for name in chosen.models for p in _problems(conf, name)]:
        print("\n".join(f"pin: {problem}" for problem in problems), file=sys.stderr)
        return 2
    try:
        pinned = {name: _pinned(conf / f"{name}.yaml", chosen.revision) for name in chosen.models}
    except HubError as error:
        print(f"pin: {error}; nothing was written", file=sys.stderr)
        return 1
    for name, text in pinned.items():
        _replace(conf / f"{name}.yaml", text)
    return 0


def _problems(conf: Path, name: str) -> list[str]:
    offered = sorted(path.stem for path in conf.glob("*.yaml"))
    if name not in offered:
        return [f"no model {name}; there are {', '.join(offered)}"]
    if not CHECKPOINT.search((conf / f"{name}.yaml").read_text(encoding="utf-8")):
        return [f"conf/model/{name}.yaml names no hub checkpoint ({{repo: ..., revision: ...}}) to pin"]
    return []


def _pinned(path: Path, revision: str) -> str:
    """The option's text with every hub checkpoint at its commit."""

    def pinned(found: re.Match[str]) -> str:
        sha = commit(found["repo"], revision)
        print(f"{path.stem}: {found['repo']}: {found['revision']} -> {sha}")
        return f"{{repo: {found['repo']}, revision: {sha}}}"

    return CHECKPOINT.sub(pinned, path.read_text(encoding="utf-8"))


def commit(repo: str, revision: str) -> str:
    """The commit that a branch or tag of a hub repository is at.

    Raises:
        HubError: the hub cannot be reached, has no such repository or revision, or keeps it from this user.
    """
    import httpx2
    from huggingface_hub import HfApi

    try:
        sha = HfApi().model_info(repo, revision=revision).sha
    except (OSError, httpx2.HTTPError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise HubError(f"{repo}@{revision} cannot be looked up: {said[0]}") from error
    if not sha:
        raise HubError(f"{repo}@{revision}: the hub named no commit")
    return sha


def _replace(path: Path, text: str) -> None:
    scratch = path.with_suffix(".yaml.part")
    scratch.write_text(text, encoding="utf-8")
    os.replace(scratch, path)


if __name__ == "__main__":
    sys.exit(main())
