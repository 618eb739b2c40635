"""A full-duplex session as values: when the user's lines are due, and what is known of it afterwards.

Times are frames of a virtual clock: a frame's index times `frame_s`. A request's turns are the user's lines; a turn's
`timing` text says when its audio is due, and the first turn's `pace` how long the user waits for what. Both are part of
the request, so they are in the trial's id. A reply's events say what happened, and `read` makes a `Course` of them.

Invariant: writing and reading are inverse; a time in seconds is never the source of a frame's index.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from farm.types import AudioSegment, Event, Reply, TextSegment, Turn

Kind = Literal["turn", "interruption", "distractor"]
After = Literal["start", "onset", "end"]
Ending = Literal["complete", "not_interrupted", "no_onset", "never_finished", "too_long"]
"""`not_interrupted`: it had ended before the interruption was due; `no_onset`: it did not speak when a line waited for
it; `never_finished`: it went on and on when a line waited for its end; `too_long`: the session's limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When a line of the user's is due."""

    kind: Kind
    """A `distractor` (backchannel, side talk, noise) is not meant to stop the assistant."""
    after: After
    """The session's `start`, or the assistant's first `onset` or its `end` since the user's line before."""
    delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How the user waits, and what counts as speech and as its end; all of it is in the trial's id."""

    ended_s: float = 1.0
    """The assistant has finished after so long a silence."""
    patience_s: float = 8.0
    """How long the user waits for the assistant's onset."""
    longest_s: float = 20.0
    """How long the user waits for a reply's end, from its onset."""
    limit_s: float = 120.0
    """Of the session."""
    voiced_dbfs: float = -40.0
    """A frame of the assistant's whose level is above this is speech."""
    onset_frames: int = 2
    """So many frames of speech on end are an onset, at the first of them."""
    pause_s: float = 0.4
    """Shorter silences are inside a run of speech."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Frames from `begin` up to, not including, `end`."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A line of the user's that was played."""

    kind: Kind
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What happened in a session."""

    frame_s: float
    frames: int
    ending: Ending
    lines: tuple[Said, ...]
    speech: tuple[Span, ...]
    """The assistant's runs of speech."""
    pieces: tuple[tuple[int, str], ...]
    """What the assistant said: (frame in which the piece begins, piece)."""

    def text(self, begin: int = 0, end: int | None = None) -> str:
        """What the assistant said in the frames from `begin` up to `end`."""
        inside = [p for f, p in self.pieces if f >= begin and (end is None or f < end)]
        return "".join(inside).strip()

    def speaking(self, frame: int) -> Span | None:
        """The assistant's run of speech that a frame lies in."""
        return next((run for run in self.speech if run.begin <= frame < run.end), None)

    def onset(self, frame: int) -> int | None:
        """Where the assistant first speaks at or after a frame: the frame itself where it is speaking."""
        return next((max(run.begin, frame) for run in self.speech if run.end > frame), None)


def frames_of(seconds: float, frame_s: float) -> int:
    """The first frame that begins at or after a time; 2.4 s are 30 frames of 80 ms, not 31."""
    return math.ceil(round(seconds / frame_s, 6))


# --- in a request --------------------------------------------------------------------------------------------------


def line(segment: AudioSegment, timing: Timing, pace: Pace | None = None) -> Turn:
    """A turn of a request: the pace (the first turn's only), when the line is due, its audio."""
    first = () if pace is None else (TextSegment(role="pace", text=_text(pace)),)
    return (*first, TextSegment(role="timing", text=_text(timing)), segment)


def timing_of(turn: Turn) -> Timing:
    """When a turn's audio is due.

    Raises:
        ValueError: the turn does not say.
    """
    found = _texts(turn, "timing")
    if not found:
        raise ValueError("a turn without timing: only a full-duplex task can be asked of a duplex model")
    return Timing(**json.loads(found[0]))


def pace_of(turns: Sequence[Turn]) -> Pace:
    """The pace of a session; the default one where no turn says."""
    found = [text for turn in turns for text in _texts(turn, "pace")]
    return Pace(**json.loads(found[0])) if found else Pace()


def _texts(turn: Turn, role: str) -> list[str]:
    return [s.text for s in turn if isinstance(s, TextSegment) and s.role == role]


def _text(value: Timing | Pace) -> str:
    return json.dumps(asdict(value), sort_keys=True)


# --- in a reply ----------------------------------------------------------------------------------------------------


def events(course: Course) -> tuple[Event, ...]:
    """A course as events on the audio clock, in order of time."""
    found = [_event(course, 0, "session", "course", _ends(course))]
    for said in course.lines:
        found.append(_event(course, said.span.begin, "user", said.kind, asdict(said.span)))
    for run in course.speech:
        found.append(_event(course, run.begin, "assistant", "speech", asdict(run)))
    for frame, piece in course.pieces:
        found.append(_event(course, frame, "assistant", "piece", {"frame": frame, "text": piece}))
    return tuple(sorted(found, key=lambda event: event.t_s or 0.0))


def _ends(course: Course) -> dict[str, Any]:
    return {"frame_s": course.frame_s, "frames": course.frames, "ending": course.ending}


def _event(course: Course, frame: int, actor: str, kind: str, data: dict[str, Any]) -> Event:
    t_s = round(frame * course.frame_s, 6)
    return Event(t_s=t_s, clock="audio", actor=actor, kind=kind, data=json.dumps(data, ensure_ascii=False))


def read(reply: Reply) -> Course | None:
    """What happened in the session that a reply is of; None where it is of none."""
    told: dict[str, list[tuple[str, Any]]] = {"session": [], "user": [], "assistant": []}
    for event in reply.events:
        if event.clock == "audio" and event.actor in told:
            told[event.actor].append((event.kind, json.loads(event.data)))
    ends = [data for kind, data in told["session"] if kind == "course"]
    if not ends:
        return None
    said: list[tuple[Any, Any]] = told["user"]
    return Course(
        **ends[0],
        lines=tuple(Said(kind=kind, span=Span(**data)) for kind, data in said),
        speech=tuple(Span(**data) for kind, data in told["assistant"] if kind == "speech"),
        pieces=tuple((d["frame"], d["text"]) for kind, d in told["assistant"] if kind == "piece"),
    )
