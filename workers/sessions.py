"""Full-duplex sessions in batches on a virtual clock: many users at once talk to one model, nobody waits.

A session enters a row as soon as one is free and leaves it when it is over, at any frame (continuous batching); a frame
takes as long as the model computes. To the engine a session is a trial like any other: `Sessions` answers requests.

Invariant: a reply depends on its request alone: not on the rows, on when it entered, or on its neighbours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

import audio
from farm.sessions import events, pace_of, timing_of
from farm.types import (
    AudioSegment,
    DuplexModel,
    Event,
    Failure,
    Frame,
    Reply,
    Request,
    Row,
    Session,
    Step,
    Turn,
    Waveform,
)
from workers.dialogue import Line, Samples, User


class Sessions:
    """A duplex model as one that answers requests (`farm.types.SpeechModel`).

    Args:
        model: steps all rows at once.
        rows: sessions at once at most; the requests of a batch that are more wait for a row.
    """

    def __init__(self, model: DuplexModel, rows: int) -> None:
        self.version = model.version
        self._model, self._rows = model, rows
        self._frame_samples = round(model.frame_s * model.sample_rate_hz)

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """Runs every request's session to its end; see `farm.types.SpeechModel`."""
        waiting = deque(enumerate(requests))
        running: dict[Row, _Running] = {}
        replies: dict[int, Reply] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self._rows:
                    self._enter(*waiting.popleft(), running, replies)
                for row in self._step(running) if running else ():
                    self._model.close(row)
                    over = running.pop(row)
                    replies[over.index] = over.reply(self._model.sample_rate_hz)
        finally:
            for row in running:
                self._model.close(row)
        return [replies[index] for index in range(len(requests))]

    def _enter(
        self, index: int, request: Request, running: dict[Row, _Running], replies: dict[int, Reply]
    ) -> None:
        try:
            user = self._user(request)
            row = self._model.open(Session(system=request.system, seed=request.seed))
        except ValueError as error:
            replies[index] = Reply(failure=Failure(kind="input_error", message=str(error)))
        else:
            assert row not in running, f"row {row} was given out twice"
            running[row] = _Running(index, user)

    def _user(self, request: Request) -> User:
        rate_hz = self._model.sample_rate_hz
        lines = [Line(timing=timing_of(t), samples=_samples(t, rate_hz)) for t in request.turns]
        return User(lines, pace_of(request.turns), self._model.frame_s, self._frame_samples)

    def _step(self, running: dict[Row, _Running]) -> list[Row]:
        """One frame of all rows; the rows whose session is over."""
        frames = {row: session.user.frame() for row, session in running.items()}
        steps = self._model.step({row: Frame(samples=samples) for row, samples in frames.items()})
        assert steps.keys() == frames.keys(), f"rows {sorted(steps)} for {sorted(frames)}"
        for row, session in running.items():
            session.take(frames[row], steps[row])
        return [row for row, session in running.items() if session.over]


class _Running:
    """A session in its row."""

    def __init__(self, index: int, user: User) -> None:
        self.index, self.user = index, user
        self._heard: list[Samples] = []
        self._spoken: list[Samples] = []
        self._pieces: list[tuple[int, str]] = []
        self._events: list[Event] = []
        self._failure: Failure | None = None

    @property
    def over(self) -> bool:
        return self.user.ending is not None or self._failure is not None

    def take(self, heard: Samples, step: Step) -> None:
        """Takes one frame of both sides."""
        if step.failure is None and len(step.samples) != len(heard):
            message = f"{len(step.samples)} samples for a frame of {len(heard)}"
            step = Step(samples=heard, failure=Failure(kind="model_error", message=message))
        if step.failure is not None:
            self._failure = step.failure
            return
        if step.text:
            self._pieces.append((len(self._spoken), step.text))
        self._events += step.events
        self._heard.append(heard)
        self._spoken.append(step.samples)
        self.user.hear(step.samples)

    def reply(self, sample_rate_hz: int) -> Reply:
        """What became of the session."""
        if self._failure is not None:
            return Reply(failure=self._failure)
        course = self.user.course(self._pieces)
        return Reply(
            text=course.text(),
            speech=_waveform(self._spoken, sample_rate_hz),
            user=_waveform(self._heard, sample_rate_hz),
            events=(*events(course), *self._events),
            truncated=course.ending == "too_long",
        )


def _samples(turn: Turn, sample_rate_hz: int) -> Samples:
    (segment,) = (s for s in turn if isinstance(s, AudioSegment))
    assert segment.waveform is not None, "a request reaches a model only after its audio was heard"
    return audio.resample(segment.waveform, sample_rate_hz).samples


def _waveform(frames: Sequence[Samples], sample_rate_hz: int) -> Waveform:
    return Waveform(samples=np.concatenate(frames), sample_rate_hz=sample_rate_hz)
