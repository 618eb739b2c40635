"""A benchmark's data folder: one of this machine, or a data set of the Hugging Face hub at one revision.

Invariant: what comes from the hub is pinned to a commit, since replies to changing data cannot be compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

PREFIX = "hub:"


def data_folder(path: str, patterns: Sequence[str]) -> Path:
    """The folder that a setting names; a data set of the hub is downloaded first, or taken from the hub's cache.

    Args:
        path: a folder, or `hub:owner/name@commit`.
        patterns: which of the hub's files are needed: `data_synthesis/*`.

    Raises:
        ValueError: no commit is given, or the hub cannot be asked and its cache has nothing.
    """
    if not path.startswith(PREFIX):
        return Path(path).expanduser()
    match = re.fullmatch(r"([^/@\s]+/[^/@\s]+)@([0-9a-f]{40})", path.removeprefix(PREFIX))
    if not match:
        raise ValueError(
            f"{path}: a data set of the hub is named hub:owner/name@commit, the commit's 40 digits whole"
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            match[1], repo_type="dataset", revision=match[2], allow_patterns=list(patterns)
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ValueError(f"{path}: not downloaded: {str(error).splitlines()[0]}") from error
    return Path(folder)
