"""The user's side of a session: onsets and ends by frame, interruptions injected to the frame."""

import numpy as np
import pytest

from farm.sessions import Course, Pace, Span, Timing, frames_of
from workers.dialogue import Line, Track, User

FRAME_S, SIZE = 0.08, 8
LOUD, QUIET = np.full(SIZE, 0.3, np.float32), np.zeros(SIZE, np.float32)
PACE = Pace(patience_s=2.0, longest_s=10.0, limit_s=30.0)


def line(kind: str, after: str, delay_s: float, frames: float) -> Line:
    samples = np.full(round(frames * SIZE), 0.5, np.float32)
    return Line(timing=Timing(kind=kind, after=after, delay_s=delay_s), samples=samples)  # type: ignore[arg-type]


OPENING = line("turn", "start", 0.4, 10)
INTERRUPTION = line("interruption", "onset", 3.0, 12.5)


def talk(lines: list[Line], spoken: list[tuple[int, int]], pace: Pace = PACE) -> tuple[Course, list[bool]]:
    """A session whose assistant speaks in given frames; the course, and in which frames the user was heard."""
    user = User(lines, pace, FRAME_S, SIZE)
    heard = []
    while user.ending is None:
        heard.append(bool(user.frame().any()))
        frame = len(heard) - 1
        user.hear(LOUD if any(b <= frame < e for b, e in spoken) else QUIET)
    return user.course([]), heard


def test_a_time_on_a_frames_edge_is_that_frame() -> None:
    assert [frames_of(s, FRAME_S) for s in (2.4, 3.0, 0.0, 0.08, 0.081)] == [30, 38, 0, 1, 2]


def test_the_interruption_begins_in_the_first_frame_three_seconds_after_the_onset() -> None:
    course, heard = talk([OPENING, INTERRUPTION], [(20, 70), (80, 90)])
    assert course.ending == "complete"
    assert [(s.kind, s.span) for s in course.lines] == [
        ("turn", Span(begin=5, end=15)),
        ("interruption", Span(begin=58, end=71)),
    ]
    assert [n for n, on in enumerate(heard) if on] == [*range(5, 15), *range(58, 71)]
    assert course.speech == (Span(begin=20, end=70), Span(begin=80, end=90))
    assert course.speaking(58) == Span(begin=20, end=70) and course.onset(71) == 80


@pytest.mark.parametrize("onset", [16, 21, 33])
def test_the_injection_follows_the_onset_wherever_it_is(onset: int) -> None:
    course, _ = talk([OPENING, INTERRUPTION], [(onset, 90)])
    assert course.lines[1].span.begin == onset + 38


def test_a_click_is_no_onset_and_a_short_pause_is_no_end() -> None:
    course, _ = talk([OPENING, INTERRUPTION], [(17, 18), (20, 40), (44, 70)])
    assert course.lines[1].span.begin == 58
    assert course.speech == (Span(begin=20, end=70),)


def test_an_assistant_that_had_ended_is_not_interrupted() -> None:
    course, heard = talk([OPENING, INTERRUPTION], [(20, 45)])
    assert course.ending == "not_interrupted"
    assert not any(heard[15:]) and len(course.lines) == 1


def test_in_the_control_the_same_line_waits_for_the_end() -> None:
    after = line("interruption", "end", 1.0, 12.5)
    course, _ = talk([OPENING, after], [(20, 70), (100, 110)])
    assert course.ending == "complete"
    assert course.lines[1].span == Span(begin=83, end=96)


def test_whoever_waits_in_vain_says_so() -> None:
    assert talk([OPENING, INTERRUPTION], [])[0].ending == "no_onset"
    after = line("interruption", "end", 1.0, 4)
    assert talk([OPENING, after], [(20, 9999)])[0].ending == "never_finished"
    short = Pace(patience_s=60.0, limit_s=4.0)
    assert talk([OPENING, INTERRUPTION], [], short)[0].ending == "too_long"


def test_after_the_last_line_the_session_ends_with_the_reply_or_without() -> None:
    spoken, _ = talk([OPENING], [(20, 40)])
    assert spoken.ending == "complete" and spoken.frames == 40 + 13
    silent, _ = talk([OPENING], [])
    assert silent.ending == "complete" and silent.frames == 15 + 25
    endless, _ = talk([OPENING], [(20, 9999)])
    assert endless.ending == "complete" and endless.frames == 20 + 125


def test_a_distractor_leaves_the_interruptions_time_as_it_was() -> None:
    backchannel = line("distractor", "onset", 1.0, 4)
    course, _ = talk([OPENING, backchannel, INTERRUPTION], [(20, 90)])
    assert [s.span.begin for s in course.lines] == [5, 33, 58]


def test_the_users_line_does_not_wait_for_whoever_talks_over_it() -> None:
    """Speech during the line is no answer to it: the onset is looked for from the line's end on."""
    course, _ = talk([OPENING, INTERRUPTION], [(3, 90)])
    assert course.lines[1].span.begin == 15 + 38


def test_a_level_below_the_floor_is_silence() -> None:
    track = Track(Pace(voiced_dbfs=-40.0), FRAME_S)
    for level in (0.009, 0.009, 0.011, 0.011):
        track.hear(np.full(SIZE, level, np.float32))
    assert track.voiced == [False, False, True, True] and track.onset(0) == 2
