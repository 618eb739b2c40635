"""Whether values from YAML fit a dataclass's fields: types and unknown names, said with what would do.

Invariant: a whole number is a float too, true is no number; nothing is converted.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Built = TypeVar("Built")


def built(kind: type[Built], values: Any, where: str) -> Built:
    """A dataclass from settings.

    Raises:
        ValueError: no mapping, unknown or missing names, or values of another type; all of them at once.
    """
    problems = [f"{where}: {problem}" for problem in misfits(kind, values)]
    if problems:
        raise ValueError("\n".join(problems))
    return kind(**values)


def misfits(kind: type[Any], values: Any) -> Iterator[str]:
    """What does not fit."""
    if not isinstance(values, Mapping):
        yield f"settings are wanted, not {values!r}"
        return
    fields = dataclasses.fields(kind)
    known = [field.name for field in fields]
    if unknown := [str(key) for key in values if key not in known]:
        yield f"no setting {', '.join(unknown)}; it has {', '.join(known)}"
    bare = (dataclasses.MISSING, dataclasses.MISSING)
    if missing := [f.name for f in fields if f.name not in values and (f.default, f.default_factory) == bare]:
        yield f"{', '.join(missing)} must be given"
    hints = get_type_hints(kind)
    for name, value in values.items():
        if name in hints and not fits(value, hints[name]):
            yield f"{name}={value!r}: {wanted(hints[name])}"


def fits(value: Any, hint: Any) -> bool:
    """Whether a value from YAML fits a field's type; a whole number is a float too, true is no number."""
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in get_args(hint))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def wanted(hint: Any) -> str:
    """A type in words."""
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    return f"wanted is {hint.__name__ if isinstance(hint, type) else hint}"
