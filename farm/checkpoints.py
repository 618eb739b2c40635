"""Where a component's weights lie: a folder of this machine, a hub repository at one revision, or a server.

Invariant: a checkpoint is a mapping of one of three shapes, nothing else:
`{path, made_by}`: a folder or file of this machine; `made_by` (optional) is the command that brings it;
`{repo, revision}`: a hub repository at a commit;
`{served_model, label}`: the name under which a server offers it, and the user's name for what weights those are.
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
    keys = set(checkpoint) - {"made_by"}
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
    if set(checkpoint) - {"made_by"} != {"path"}:
        raise ValueError(f"this component takes only a local `path`, not {dict(checkpoint)}")
    path = Path(str(checkpoint["path"])).expanduser()
    if not path.exists():
        brought = f"; made by: {checkpoint['made_by']}" if "made_by" in checkpoint else ""
        raise ValueError(f"no checkpoint at {path}{brought}")
    return path
