"""Sessions of one model in batches: each is what it is alone, whoever sits beside it and whenever it entered."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from farm.sessions import Pace, Timing, line, read
from farm.types import AudioSegment, Failure, Frame, Reply, Request, Row, Session, Step, Turn, Waveform
from workers.sessions import Sessions

RATE_HZ = 1000


class Echo:
    """A stand-in that needs no weights: murmurs by its seed, louder where the user was, for as long as it was told."""

    version = "1"
    frame_s = 0.08
    sample_rate_hz = RATE_HZ

    def __init__(self, *, bad: int = -1) -> None:
        self.most_rows = 0
        self.bad = bad
        self._rows: dict[Row, tuple[np.random.Generator, list[float]]] = {}

    def open(self, session: Session) -> Row:
        if session.system == "refused":
            raise ValueError("not this one")
        row = Row(max(self._rows, default=-1) + 1)
        self._rows[row] = (np.random.default_rng(session.seed), [])
        self.most_rows = max(self.most_rows, len(self._rows))
        return row

    def step(self, frames: Mapping[Row, Frame]) -> dict[Row, Step]:
        assert frames.keys() == self._rows.keys()
        return {row: self._one(row, frame) for row, frame in frames.items()}

    def _one(self, row: Row, frame: Frame) -> Step:
        draw, heard = self._rows[row]
        heard.append(float(np.abs(frame.samples).mean()))
        if len(heard) == self.bad:
            return Step(samples=frame.samples, failure=Failure(kind="model_error", message="broke"))
        quiet = len(heard) % 100 > 60
        noise = draw.normal(0, 0.0 if quiet else 0.1, len(frame.samples)) * (1 + heard[-1])
        return Step(samples=noise.astype(np.float32), text="" if quiet else f"{len(heard)} ")

    def close(self, row: Row) -> None:
        del self._rows[row]

    @property
    def open_rows(self) -> int:
        return len(self._rows)


def turn(seconds: float, timing: Timing, pace: Pace | None = None) -> Turn:
    samples = np.linspace(-0.5, 0.5, int(seconds * RATE_HZ), dtype=np.float32)
    heard = Waveform(samples=samples, sample_rate_hz=RATE_HZ)
    segment = AudioSegment(role="question", path="", sha256="", seconds=seconds, waveform=heard)
    return line(segment, timing, pace)


def request(seed: int) -> Request:
    opening = turn(
        0.5 + 0.1 * seed, Timing(kind="turn", after="start", delay_s=0.2), Pace(longest_s=6.0, patience_s=3.0)
    )
    interruption = turn(0.7, Timing(kind="interruption", after="onset", delay_s=1.0))
    return Request(system="s", turns=(opening, interruption), seed=seed, trial_id=str(seed))


REQUESTS = [request(seed) for seed in range(6)]


def assert_same(left: Reply, right: Reply) -> None:
    assert replace(left, speech=None, user=None) == replace(right, speech=None, user=None)
    for a, b in ((left.speech, right.speech), (left.user, right.user)):
        assert a is not None and b is not None
        np.testing.assert_array_equal(a.samples, b.samples)


@pytest.fixture(scope="module")
def alone() -> list[Reply]:
    return [Sessions(Echo(), rows=1).answer([r])[0] for r in REQUESTS]


@pytest.mark.parametrize("rows", [1, 2, 4, 8])
def test_a_session_is_what_it_is_alone_in_any_number_of_rows(rows: int, alone: list[Reply]) -> None:
    model = Echo()
    for reply, expected in zip(Sessions(model, rows).answer(REQUESTS), alone, strict=True):
        assert_same(reply, expected)
    assert model.most_rows == min(rows, len(REQUESTS)) and model.open_rows == 0


def test_a_session_is_what_it_is_alone_in_any_order(alone: list[Reply]) -> None:
    order = [3, 0, 5, 2, 4, 1]
    for index, reply in zip(order, Sessions(Echo(), 3).answer([REQUESTS[i] for i in order]), strict=True):
        assert_same(reply, alone[index])


def test_sessions_differ_by_seed_and_both_sides_are_in_sync(alone: list[Reply]) -> None:
    assert len({reply.speech.samples.tobytes() for reply in alone if reply.speech}) == len(alone)
    for reply in alone:
        course = read(reply)
        assert course and reply.speech and reply.user and course.ending == "complete"
        assert len(reply.speech.samples) == len(reply.user.samples) == course.frames * 80
        span = course.lines[1].span
        inside = reply.user.samples[span.begin * 80 : span.end * 80]
        assert inside.any() and not reply.user.samples[: course.lines[0].span.begin * 80].any()
        assert span.begin == (course.onset(course.lines[0].span.end) or 0) + 13


def test_what_fails_fails_alone() -> None:
    replies = Sessions(Echo(), 4).answer([REQUESTS[0], replace(REQUESTS[1], system="refused"), REQUESTS[2]])
    assert [reply.failure and reply.failure.kind for reply in replies] == [None, "input_error", None]
    (broken,) = Sessions(Echo(bad=20), 4).answer([REQUESTS[0]])
    assert broken.failure == Failure(kind="model_error", message="broke")


def test_a_request_of_another_task_is_refused() -> None:
    plain = Request(system="s", turns=(REQUESTS[0].turns[0][-1:],))
    (reply,) = Sessions(Echo(), 1).answer([plain])
    assert reply.failure and "full-duplex" in reply.failure.message
