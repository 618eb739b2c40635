"""Where an OpenAI-compatible server is and how often it is asked: shared by served models and judges.

Invariant: none of it changes an answer, so none of it is in an id; a key is named by its environment variable and never
written down.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

NO_KEY = "none"
"""The client insists on a key; with its own default, OpenAI's would be sent to every server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server; see `models.openai_server` and `scoring.judge`."""

    base_url: str
    """With the version: `http://localhost:8000/v1`."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the key; None sends none."""
    concurrency: int = 32
    """Requests in flight at most, of one worker."""
    timeout_s: float = 120.0
    """Of one attempt."""
    attempts: int = 4

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Server:
        """The settings of a configuration.

        Raises:
            ValueError: an unknown key, or a value outside its range.
        """
        known_only("server", cls, values)
        server = cls(**{"base_url": None, **values})
        url = urlsplit(str(server.base_url))
        if url.scheme not in ("http", "https") or not url.netloc:
            raise ValueError(f"server: base_url={server.base_url}: http:// or https://, host and path")
        if url.username or url.password:
            raise ValueError("server: base_url must hold no password, it is printed: use api_key_env")
        if not isinstance(server.api_key_env, str | None):
            raise ValueError(f"server: api_key_env={server.api_key_env}: a variable's name, or null")
        if not _whole(server.concurrency) or not _whole(server.attempts) or not _positive(server.timeout_s):
            raise ValueError(f"{server}: concurrency and attempts whole and >= 1, timeout_s > 0")
        return server

    def key(self) -> str:
        """The key out of the environment.

        Raises:
            ValueError: the variable is not set or empty.
        """
        if self.api_key_env is None:
            return NO_KEY
        if not os.environ.get(self.api_key_env):
            raise ValueError(
                f"server: api_key_env={self.api_key_env}: no such environment variable, or empty"
            )
        return os.environ[self.api_key_env]


def known_only(name: str, kind: type[Any], values: Mapping[str, Any]) -> None:
    """Refuses settings that a dataclass has no field for; raises ValueError with those it has."""
    known = [field.name for field in fields(kind)]
    if unknown := [str(key) for key in values if key not in known]:
        raise ValueError(f"{name}: no setting {', '.join(unknown)}; it has {', '.join(known)}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
