"""From a request that names audio files to one that carries waveforms: what a model hears under a condition.

Invariant: a condition acts on segments with role `question` (where it says so, on the speech of examples too) and on
nothing else, at each file's own rate and before joining, cutting and resampling to the model's rate, so that models of
different rates hear one noise. Thread-safe: the result depends on the arguments alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from audio import conditions
from audio.activity import active_rms
from audio.conditions.draw import said
from audio.files import load, resample
from farm.types import AudioSegment, Condition, Joining, Request, Segment, Turn, Waveform

SILENCE_RATE_HZ = 16_000
"""Of silence that is not joined to anything; nobody can hear it."""
EXAMPLES_KEPT = 256
"""Files of examples that a worker keeps decoded: about 1 MB each, and many questions share them."""


def hear(
    request: Request, condition: Condition, seed: int, sample_rate_hz: int | None = None
) -> tuple[Request, dict[str, str]]:
    """Decodes a request's audio, applies a condition, and joins the audio where the request says so.

    Args:
        request: its audio segments name files, or are silence to be made.
        condition: applied to each `question` segment; the n-th one (from 0) with `seed` + n. Where it acts on `all`,
            to each example's speech too, the n-th example segment with `seed` - 1 - n: the question hears the same.
        seed: `farm.ids.TrialIds.condition_seed`.
        sample_rate_hz: the rate that the model takes; None leaves each file's own (of a joined turn, its question's).

    Returns:
        The request with every waveform set, and what was drawn and measured (`audio.conditions.apply`); where there is
        more than one question its keys begin with `question<n>.`, those of examples with `example<n>.`. A joined turn
        that was cut adds `cut_s`, the seconds that are gone from its beginning.

    Raises:
        ValueError: `<path>: <reason>`: a file that cannot be decoded, or `silent` from end to end (role `silence` may
            be), or too short for the condition.
    """
    heard: dict[tuple[int, int], AudioSegment] = {}
    drawn: list[dict[str, str]] = []
    of_examples: list[dict[str, str]] = []
    for place, segment in _audio(request):
        waveform = _loaded(segment)
        if segment.role == "question":
            waveform, values = _applied(condition, segment, waveform, seed + len(drawn))
            drawn.append(values)
        elif condition.acts_on == "all" and segment.role != "silence":
            waveform, values = _applied(condition, segment, waveform, max(0, seed - 1 - len(of_examples)))
            of_examples.append(values)
        heard[place] = replace(segment, waveform=waveform)
    turns = [
        tuple(heard.get((t, s), segment) for s, segment in enumerate(turn))
        for t, turn in enumerate(request.turns)
    ]
    cuts: dict[str, str] = {}
    if request.joined:
        turns, cuts = _all_joined(turns, request.joined)
    turns = [_at_rate(turn, sample_rate_hz) for turn in turns]
    return replace(request, turns=tuple(turns)), _merged(drawn, "question") | _merged(
        of_examples, "example", always=True
    ) | cuts


def _audio(request: Request) -> Iterator[tuple[tuple[int, int], AudioSegment]]:
    places: Iterator[tuple[tuple[int, int], Segment]] = (
        ((t, s), segment) for t, turn in enumerate(request.turns) for s, segment in enumerate(turn)
    )
    return ((place, segment) for place, segment in places if isinstance(segment, AudioSegment))


def _applied(
    condition: Condition, segment: AudioSegment, waveform: Waveform, seed: int
) -> tuple[Waveform, dict[str, str]]:
    try:
        return conditions.apply(condition, waveform, seed)
    except ValueError as error:
        raise ValueError(f"{segment.path}: {error}") from error


def _loaded(segment: AudioSegment) -> Waveform:
    if segment.role == "silence" and not segment.path:
        return _silence(segment.seconds, SILENCE_RATE_HZ)
    if segment.role == "silence":
        return load(segment.path)
    return (
        _example(segment.path, segment.sha256)
        if segment.role.startswith("example")
        else _speech(segment.path)
    )


@lru_cache(maxsize=EXAMPLES_KEPT)
def _example(path: str, sha256: str) -> Waveform:
    """Decoded once a worker; nobody writes into a waveform's samples."""
    waveform = _speech(path)
    waveform.samples.setflags(write=False)
    return waveform


def _speech(path: str) -> Waveform:
    waveform = load(path)
    try:
        active_rms(waveform.samples, waveform.sample_rate_hz)
    except ValueError as error:
        raise ValueError(f"{path}: silent ({error})") from error
    return waveform


def _silence(seconds: float, sample_rate_hz: int) -> Waveform:
    samples = np.zeros(round(seconds * sample_rate_hz), np.float32)
    return Waveform(samples=samples, sample_rate_hz=sample_rate_hz)


# --- joining ------------------------------------------------------------------------------------------------------


def _all_joined(turns: Sequence[Turn], joining: Joining) -> tuple[list[Turn], dict[str, str]]:
    joined = [_joined(turn, joining) for turn in turns]
    cut_s = [seconds for _, seconds in joined]
    names = ["cut_s"] if len(turns) == 1 else [f"turn{n}.cut_s" for n in range(len(turns))]
    cuts = {name: said(seconds) for name, seconds in zip(names, cut_s, strict=True) if seconds}
    return [turn for turn, _ in joined], cuts


def _joined(turn: Turn, joining: Joining) -> tuple[Turn, float]:
    """The turn with one audio segment where its last one was, and the seconds that were cut off its beginning."""
    pieces = [s for s in turn if isinstance(s, AudioSegment)]
    if not pieces:
        return turn, 0.0
    last = pieces[-1]
    assert last.waveform is not None
    rate_hz = last.waveform.sample_rate_hz
    samples = np.concatenate([_samples(piece, rate_hz) for piece in pieces])
    longest = len(samples) if joining.keep_last_s is None else round(joining.keep_last_s * rate_hz)
    cut = max(0, len(samples) - longest)
    whole = replace(last, waveform=Waveform(samples=samples[cut:], sample_rate_hz=rate_hz))
    kept: list[Segment] = [s for s in turn if not isinstance(s, AudioSegment) or s is last]
    return tuple(whole if s is last else s for s in kept), cut / rate_hz


def _samples(piece: AudioSegment, rate_hz: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    assert piece.waveform is not None
    if piece.role == "silence" and not piece.path:
        return _silence(piece.seconds, rate_hz).samples
    return resample(piece.waveform, rate_hz).samples


def _at_rate(turn: Turn, sample_rate_hz: int | None) -> Turn:
    if not sample_rate_hz:
        return turn
    return tuple(
        replace(s, waveform=resample(s.waveform, sample_rate_hz))
        if isinstance(s, AudioSegment) and s.waveform
        else s
        for s in turn
    )


def _merged(drawn: list[dict[str, str]], name: str, *, always: bool = False) -> dict[str, str]:
    if len(drawn) == 1 and not always:
        return drawn[0]
    return {f"{name}{n}.{key}": value for n, values in enumerate(drawn) for key, value in values.items()}
