"""Where a component's weights lie: a folder of this machine, or a hub repository at one revision.

Invariant: a checkpoint is a mapping with either `path` or `repo` (and its `revision`), nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def source(checkpoint: Mapping[str, Any]) -> tuple[str, str | None]:
    """What a hub library's `from_pretrained(name, revision=...)` takes.

    Args:
        checkpoint: `{path: folder}` or `{repo: owner/name, revision: commit}`.

    Returns:
        (folder, None) or (repository, revision); a revision of None is the repository's default branch.

    Raises:
        ValueError: the mapping has another shape, or nothing lies at the path.
    """
    keys = set(checkpoint)
    if keys == {"path"}:
        return str(local(checkpoint)), None
    if keys in ({"repo"}, {"repo", "revision"}):
        revision = checkpoint.get("revision")
        return str(checkpoint["repo"]), None if revision is None else str(revision)
    found = ", ".join(sorted(map(str, keys))) or "nothing"
    raise ValueError(f"a checkpoint has either `path`, or `repo` and `revision`; this one has {found}")


def local(checkpoint: Mapping[str, Any]) -> Path:
    """The folder or file of a checkpoint that must lie on this machine (`{path: ...}`).

    Raises:
        ValueError: the checkpoint has no path, or nothing lies there.
    """
    if set(checkpoint) != {"path"}:
        raise ValueError(f"this component takes only a local `path`, not {dict(checkpoint)}")
    path = Path(str(checkpoint["path"])).expanduser()
    if not path.exists():
        raise ValueError(f"no checkpoint at {path}; demo weights: python scripts/fetch_demo_weights.py")
    return path
