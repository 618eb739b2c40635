"""Whether an option's values fit what they are for: field types and ranges, and the arguments of every `_target_`.

Invariant: no adapter is made and nothing heavy is imported; what is wrong is said with the option, the value and what
would do.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from hydra.utils import get_class

from farm.settings import fits, wanted
from farm.types import WorkerOptions

Built = TypeVar("Built")

AT_LEAST: Mapping[str, float] = {
    "count": 1,
    "max_batch": 1,
    "hear_threads": 1,
    "num_cpus": 0,
    "num_gpus": 0,
    "sample_rate_hz": 1,
}
POSITIVE = ("max_batch_audio_s", "timeout_s", "load_timeout_s", "max_audio_s")
ENVIRONMENTS = ".envs"
"""Folder of what scripts/make_env.py makes."""
GIVEN_BY_THE_WORKER = ("device",)
"""Arguments that a worker passes itself."""


def build(kind: type[Built], values: Mapping[str, Any], where: str) -> Built:
    """A frozen dataclass from an option's values.

    Raises:
        ValueError: unknown or missing fields, a value of another type or out of its range.
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"{where}: fields are wanted, not {values!r}")
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    known = [field.name for field in fields]
    if unknown := [key for key in values if key not in known]:
        raise ValueError(f"{where}: no field {', '.join(unknown)}; it has {', '.join(known)}")
    defaults = (dataclasses.MISSING, dataclasses.MISSING)
    if missing := [
        f.name for f in fields if f.name not in values and (f.default, f.default_factory) == defaults
    ]:
        raise ValueError(f"{where}: {', '.join(missing)} must be given")
    if problems := [*_misfits(kind, values)]:
        raise ValueError("\n".join(f"{where}: {problem}" for problem in problems))
    return kind(**values)


def _misfits(kind: type[Any], values: Mapping[str, Any]) -> Iterator[str]:
    hints = get_type_hints(kind)
    for name, value in values.items():
        if not fits(value, hints[name]):
            yield f"{name}={value!r}: {wanted(hints[name])}"
        elif value is not None and name in AT_LEAST and value < AT_LEAST[name]:
            yield f"{name}={value!r}: at least {AT_LEAST[name]:g}"
        elif value is not None and name in POSITIVE and value <= 0:
            yield f"{name}={value!r}: above 0"


def arguments(tree: Any, where: str) -> list[str]:
    """What is wrong with the arguments of every `_target_` in a tree.

    A class may have a classmethod `check(arguments)` that raises a ValueError for values it would refuse when it loads.
    """
    if isinstance(tree, list | tuple):
        return [problem for value in tree for problem in arguments(value, where)]
    if not isinstance(tree, Mapping):
        return []
    problems = [problem for value in tree.values() for problem in arguments(value, where)]
    return problems + ([f"{where}: {p}" for p in _call_problems(tree)] if "_target_" in tree else [])


def environment(workers: WorkerOptions, where: str) -> list[str]:
    """What is wrong with the interpreter that workers are to run in: it is not there."""
    named = workers.py_executable
    if named is None or not Path(named).is_absolute() or Path(named).exists():
        return []
    folder = Path(named).parents[1]
    made = (
        f"; make it: python scripts/make_env.py {folder.name}" if folder.parent.name == ENVIRONMENTS else ""
    )
    return [f"{where}: workers.py_executable={named}: no such interpreter{made}"]


def _call_problems(call: Mapping[str, Any]) -> Iterator[str]:
    target = get_class(call["_target_"])
    given = {key: value for key, value in call.items() if not key.startswith("_")}
    takes = {n: p for n, p in inspect.signature(target).parameters.items() if n not in GIVEN_BY_THE_WORKER}
    if unknown := [name for name in given if name not in takes]:
        yield f"{target.__name__} has no argument {', '.join(unknown)}; it takes {', '.join(takes)}"
    if missing := [n for n, p in takes.items() if p.default is p.empty and n not in given]:
        yield f"{target.__name__} needs {', '.join(missing)}"
    try:
        getattr(target, "check", lambda _: None)(given)
    except ValueError as error:
        yield str(error)
