"""A session's script and course, written into requests and events and read back."""

import json

import pytest

from farm.sessions import Course, Pace, Said, Span, Timing, events, line, pace_of, read, timing_of
from farm.types import AudioSegment, Event, Reply, TextSegment

AUDIO = AudioSegment(role="question", path="a.wav", sha256="0" * 64, seconds=1.0)
COURSE = Course(
    frame_s=0.08,
    frames=60,
    ending="complete",
    lines=(
        Said(kind="turn", span=Span(begin=5, end=15)),
        Said(kind="interruption", span=Span(begin=30, end=40)),
    ),
    speech=(Span(begin=20, end=33), Span(begin=45, end=55)),
    pieces=((20, "zwölf "), (31, '"two" '), (45, "three")),
)


def test_a_course_comes_back_from_its_events() -> None:
    others = (
        Event(t_s=0.5, clock="wall", actor="model", kind="first_token"),
        Event(t_s=0.0, clock="audio", actor="worker", kind="recording", data="sessions/a.flac"),
    )
    written = events(COURSE)
    assert read(Reply(text="", events=(*written, *others))) == COURSE
    assert [e.t_s for e in written] == sorted(e.t_s or 0 for e in written)
    assert {e.clock for e in written} == {"audio"}
    onset = next(e for e in written if e.kind == "speech")
    assert onset.t_s == 1.6 and json.loads(onset.data) == {"begin": 20, "end": 33}


def test_a_reply_of_no_session_has_no_course() -> None:
    assert read(Reply(text="yes")) is None


def test_what_was_said_is_found_by_frames() -> None:
    assert COURSE.text() == 'zwölf "two" three'
    assert COURSE.text(31, 45) == '"two"'
    assert COURSE.speaking(32) == COURSE.speech[0] and COURSE.speaking(33) is None
    assert [COURSE.onset(f) for f in (0, 25, 40, 55)] == [20, 25, 45, None]


def test_timing_and_pace_travel_in_the_request() -> None:
    timing = Timing(kind="interruption", after="onset", delay_s=3.0)
    pace = Pace(patience_s=4.0)
    first = line(AUDIO, Timing(kind="turn", after="start", delay_s=0.4), pace)
    second = line(AUDIO, timing)
    assert pace_of([first, second]) == pace and pace_of([second]) == Pace()
    assert timing_of(second) == timing
    with pytest.raises(ValueError, match="only a full-duplex task"):
        timing_of((TextSegment(role="question", text="?"), AUDIO))
