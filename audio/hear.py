"""From a request that names audio files to one that carries waveforms: what a model hears under a condition.

Invariant: the condition acts on segments with role `question` and on nothing else (examples stay clean), at each file's
own rate and before resampling to the model's, so that models of different rates hear one noise. Thread-safe: the
result depends on the arguments alone.
"""

from __future__ import annotations

from dataclasses import replace

from audio import conditions
from audio.activity import active_rms
from audio.files import load, resample
from farm.types import AudioSegment, Condition, Request, Segment, Waveform


def hear(
    request: Request, condition: Condition, seed: int, sample_rate_hz: int | None = None
) -> tuple[Request, dict[str, str]]:
    """Decodes a request's audio and applies a condition to its questions.

    Args:
        request: its audio segments name files.
        condition: applied to each `question` segment; the n-th one (from 0) with `seed` + n.
        seed: `farm.ids.TrialIds.condition_seed`.
        sample_rate_hz: the rate that the model takes; None leaves each file's own.

    Returns:
        The request with every waveform set, and what was drawn and measured (`audio.conditions.apply`); where there is
        more than one question its keys begin with `question<n>.`.

    Raises:
        ValueError: `<path>: <reason>`: a file that cannot be decoded, or `silent` from end to end (role `silence` may
            be), or too short for the condition.
    """
    heard: dict[tuple[int, int], AudioSegment] = {}
    drawn: list[dict[str, str]] = []
    for place, segment in _audio(request):
        waveform = _loaded(segment)
        if segment.role == "question":
            try:
                waveform, values = conditions.apply(condition, waveform, seed + len(drawn))
            except ValueError as error:
                raise ValueError(f"{segment.path}: {error}") from error
            drawn.append(values)
        if sample_rate_hz:
            waveform = resample(waveform, sample_rate_hz)
        heard[place] = replace(segment, waveform=waveform)
    turns = tuple(
        tuple(heard.get((t, s), segment) for s, segment in enumerate(turn))
        for t, turn in enumerate(request.turns)
    )
    return replace(request, turns=turns), _merged(drawn)


def _audio(request: Request) -> list[tuple[tuple[int, int], AudioSegment]]:
    places: list[tuple[tuple[int, int], Segment]] = [
        ((t, s), segment) for t, turn in enumerate(request.turns) for s, segment in enumerate(turn)
    ]
    return [(place, segment) for place, segment in places if isinstance(segment, AudioSegment)]


def _loaded(segment: AudioSegment) -> Waveform:
    waveform = load(segment.path)
    if segment.role != "silence":
        try:
            active_rms(waveform.samples, waveform.sample_rate_hz)
        except ValueError as error:
            raise ValueError(f"{segment.path}: silent ({error})") from error
    return waveform


def _merged(drawn: list[dict[str, str]]) -> dict[str, str]:
    if len(drawn) == 1:
        return drawn[0]
    return {f"question{n}.{key}": value for n, values in enumerate(drawn) for key, value in values.items()}
