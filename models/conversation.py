"""A request as chat messages: what every model with a chat template is handed.

Invariant: segments keep their order; an empty system prompt is an empty system turn (left out, many templates put one
of their own there), a system prompt of None is none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from farm.types import AudioSegment, Request, TextSegment, Turn, Waveform


def messages(
    request: Request, content: Callable[[Turn], Any], system_prefix: str = ""
) -> list[dict[str, Any]]:
    """The system turn, if any, and one user turn.

    Args:
        request: Of one turn, heard.
        content: Makes a turn's segments what the template takes: text, or a list of parts.
        system_prefix: Comes before the request's system prompt: what a model was trained to read there.
    """
    (turn,) = request.turns
    system = "\n".join(text for text in (system_prefix, request.system) if text)
    first = [{"role": "system", "content": system}] if request.system is not None or system else []
    return [*first, {"role": "user", "content": content(turn)}]


def parts(turn: Turn) -> list[dict[str, str]]:
    """A part a segment, audio without its samples: processors take those beside the text."""
    return [
        {"type": "text", "text": s.text} if isinstance(s, TextSegment) else {"type": "audio"} for s in turn
    ]


def marked(turn: Turn, marker: str) -> str:
    """The turn as one text with a marker where each audio segment was, for templates that take text only."""
    return "".join(s.text if isinstance(s, TextSegment) else marker for s in turn)


def waveforms(request: Request) -> list[Waveform]:
    """The request's audio in order, silence included."""
    segments = [s for turn in request.turns for s in turn if isinstance(s, AudioSegment)]
    heard = [s.waveform for s in segments if s.waveform is not None]
    assert len(heard) == len(segments), "a request reaches a model only after its audio was heard"
    return heard


def noise_request(seconds: float, sample_rate_hz: int, seed: int = 0) -> Request:
    """A request of faint noise: what a model warms up on."""
    noise = np.random.default_rng(seed).normal(scale=0.01, size=int(seconds * sample_rate_hz))
    waveform = Waveform(samples=noise.astype(np.float32), sample_rate_hz=sample_rate_hz)
    segment = AudioSegment(role="question", path="", sha256="", seconds=seconds, waveform=waveform)
    return Request(system=None, turns=((segment,),))
