"""A condition applied: its steps in order, each with random numbers of its own, and what was drawn on the record.

Invariant: the samples depend on condition, waveform and seed alone, in every thread, process and order; a step's draws
do not depend on the other steps. Length, rate and level never change unrecorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from inspect import signature
from typing import Any, ClassVar, Protocol

import numpy as np

from audio.conditions.draw import said
from farm import ids
from farm.types import Condition, Waveform


class Step(Protocol):
    """One transform of a condition."""

    version: ClassVar[str]
    """Bumped with every change that can change a sample: part of the trial id."""

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Transforms a waveform into a new one; draws from `rng` alone and returns what it drew, as strings."""
        ...


def apply(condition: Condition, waveform: Waveform, seed: int) -> tuple[Waveform, dict[str, str]]:
    """What is heard under a condition.

    Between steps samples may exceed full scale. At the end they are clipped to it, clean speech too: models hear what
    a recording in 16 bit would hold (scaling down instead would undo a gain, and leave a level that nobody chose).
    Never silently: `peak` is the level before that, `clipped_share` the share of samples that were beyond.

    Returns:
        The waveform, and strings by name: what the steps drew (`snr_db`; `0.Gain.gain_db` where the chain has several
        steps), `seconds` and `sample_rate_hz` where they changed, `peak` and `clipped_share` always.

    Raises:
        ValueError: the chain is not what it should be (see `build`), or a step cannot act (no active speech).
    """
    steps = build(condition)
    heard, drawn = waveform, dict[str, str]()
    for index, step in enumerate(steps):
        heard, values = step(heard, np.random.default_rng([seed, index]))
        prefix = f"{index}.{type(step).__name__}." if len(steps) > 1 else ""
        drawn |= {prefix + name: value for name, value in values.items()}
    if not len(heard.samples):
        raise ValueError("too short for this condition")
    if len(heard.samples) != len(waveform.samples) or heard.sample_rate_hz != waveform.sample_rate_hz:
        drawn["seconds"] = said(heard.seconds)
    if heard.sample_rate_hz != waveform.sample_rate_hz:
        drawn["sample_rate_hz"] = str(heard.sample_rate_hz)
    limited, levels = _limited(heard)
    return limited, drawn | levels


def build(condition: Condition) -> tuple[Step, ...]:
    """A condition's steps, made once per process.

    Raises:
        ValueError: a `_target_` that is no condition, or parameters that it does not take; the valid ones are listed.
    """
    try:
        return _steps(ids.canonical([dict(step) for step in condition.chain]))
    except ValueError as error:
        raise ValueError(f"condition {condition.name}: {error}") from error


@lru_cache(maxsize=256)
def _steps(chain: bytes) -> tuple[Step, ...]:
    return tuple(_step(parameters) for parameters in json.loads(chain))


def _step(step: Mapping[str, Any]) -> Step:
    target = step.get("_target_", "")
    module, _, name = target.rpartition(".")
    try:
        made = getattr(import_module(module), name)
    except (ValueError, ImportError, AttributeError) as error:
        known = ", ".join(_known())
        raise ValueError(f"_target_ {target!r} is no condition ({error}); there are {known}") from error
    parameters = {key: value for key, value in step.items() if key != "_target_"}
    try:
        signature(made).bind(**parameters)
    except TypeError as error:
        takes = ", ".join(signature(made).parameters) or "no parameters"
        raise ValueError(f"{target}: {error}; it takes {takes}") from None
    built: Step = made(**parameters)
    return built


def _known() -> list[str]:
    package = import_module("audio.conditions")
    return [
        f"audio.conditions.{name}" for name in package.__all__ if hasattr(getattr(package, name), "version")
    ]


def _limited(waveform: Waveform) -> tuple[Waveform, dict[str, str]]:
    level = np.abs(waveform.samples)
    peak, share = float(level.max()), float(np.mean(level > 1))
    assert np.isfinite(peak), "a condition made samples that are not finite"
    levels = {"peak": said(peak), "clipped_share": said(share)}
    if not share:
        return waveform, levels
    return replace(waveform, samples=np.clip(waveform.samples, -1, 1)), levels
