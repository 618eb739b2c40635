"""A judge's answer as points: what it said in JSON, however it wrapped it.

Invariant: points come out only where each scale has one whole number within its range; anything else is an error with
its kind, never a guess and never a 0.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scoring.rubrics import HIGHEST, LOWEST

SPELLED_ALIKE = 0.8
"""How like a key must be to one of the scales' to be taken for it."""
QUOTED_CHARACTERS = 160


class JudgementError(Exception):
    """The answer holds no valid points; the message begins with the kind of error."""


def parse(answer: str, keys: Sequence[str]) -> dict[str, int]:
    """The points of each scale.

    Args:
        answer: the judge's words: JSON, perhaps in a code fence, with prose around it, after a think block, or with a
            key misspelt.
        keys: of the scales.

    Raises:
        JudgementError: no JSON object, a scale without points, points that are no whole number or out of range.
    """
    said = re.sub(r"<think>.*?</think>", "", answer, flags=re.DOTALL).strip()
    if not said:
        raise JudgementError("empty answer")
    objects = list(_objects(said))
    if not objects:
        raise JudgementError(f"no JSON object in {said[:QUOTED_CHARACTERS]!r}")
    # The last one that has the keys: a judge that thinks aloud ends with its verdict.
    named = [_named(found, keys) for found in objects]
    best = max(reversed(named), key=len)
    if missing := [key for key in keys if key not in best]:
        raise JudgementError(f"no points for {', '.join(missing)} in {said[:QUOTED_CHARACTERS]!r}")
    return {key: _points(key, best[key]) for key in keys}


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Every JSON object in a text, outermost ones only."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            found, length = decoder.raw_decode(text[at:])
        except json.JSONDecodeError:
            length, found = 1, None
        if isinstance(found, dict):
            yield found
        at = text.find("{", at + length)


def _named(found: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """The object's values under the scales' keys; a key that is like two scales' is none's."""
    flat = {
        **found,
        **{k: v for value in found.values() if isinstance(value, dict) for k, v in value.items()},
    }
    named = {key: flat[key] for key in keys if key in flat}
    for given, value in flat.items():
        alike = difflib.get_close_matches(
            _plain(given), [_plain(key) for key in keys], n=2, cutoff=SPELLED_ALIKE
        )
        if len(alike) == 1 and not isinstance(value, dict):
            key = next(key for key in keys if _plain(key) == alike[0])
            named.setdefault(key, value)
    return named


def _plain(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key.lower().removesuffix("_score"))


def _points(key: str, value: Any) -> int:
    """4, 4.0, "4" and "4/5" are four points."""
    if isinstance(value, str) and (
        found := re.fullmatch(rf"\s*(-?\d+(?:\.0+)?)\s*(?:/\s*{HIGHEST})?\s*", value)
    ):
        value = float(found[1])
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or value != int(value)
    ):
        raise JudgementError(f"{key}={value!r}: no whole number")
    if not LOWEST <= value <= HIGHEST:
        raise JudgementError(f"{key}={value!r}: out of range, {LOWEST} to {HIGHEST}")
    return int(value)
