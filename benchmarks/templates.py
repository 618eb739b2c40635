"""Prompt texts with `{placeholders}` that an item's factors fill."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def filled(template: str, values: Mapping[str, str], where: str) -> str:
    """The template with each `{name}` replaced by its value; `{{` and `}}` stand for single braces.

    Args:
        template: the text.
        values: what may be named in it.
        where: what an error calls the template: `prompt p4`.

    Raises:
        ValueError: the template names something else; the message lists what there is.
    """
    names = {match[1] for match in _TOKEN.finditer(template) if match[1] is not None}
    if unknown := names - values.keys():
        raise ValueError(
            f"{where}: no placeholder {_braced(unknown)}; there is {_braced(values)} (and {{{{ for a brace)"
        )
    return _TOKEN.sub(lambda match: match[0][0] if match[1] is None else values[match[1]], template)


def _braced(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names))
