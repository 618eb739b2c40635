"""The user's side of one full-duplex session: which frame it gives next, from what it has heard so far.

It finds the assistant's onset and end on the assistant's own audio, and injects an interruption so long after the onset
that is exact to the frame. An assistant that had ended by then is left alone: `not_interrupted`.

Invariant: pure and causal: frame n depends on the script and on the assistant's frames before n, on no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from farm.sessions import Course, Ending, Pace, Said, Span, Timing, frames_of

Samples = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """What the user says, and when."""

    timing: Timing
    samples: Samples
    """At the model's rate."""


class Track:
    """The assistant's voice activity, frame by frame."""

    def __init__(self, pace: Pace, frame_s: float) -> None:
        self.voiced: list[bool] = []
        self._floor = 10 ** (pace.voiced_dbfs / 20)
        self._onset_frames = pace.onset_frames
        self._pause = frames_of(pace.pause_s, frame_s)
        self._silent = 0

    def hear(self, samples: Samples) -> None:
        """Takes the next frame."""
        voiced = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) > self._floor
        self.voiced.append(voiced)
        self._silent = 0 if voiced else self._silent + 1

    @property
    def silent_frames(self) -> int:
        """Silence up to now."""
        return self._silent

    def onset(self, since: int) -> int | None:
        """The first onset at or after a frame."""
        need = self._onset_frames
        for frame in range(since, len(self.voiced) - need + 1):
            if all(self.voiced[frame : frame + need]):
                return frame
        return None

    def runs(self) -> tuple[Span, ...]:
        """Runs of speech: what is shorter than an onset is none, short silences between two are inside."""
        edges = np.flatnonzero(np.diff([0, *self.voiced, 0])).reshape(-1, 2).tolist()
        runs: list[list[int]] = []
        for begin, end in edges:
            if end - begin < self._onset_frames:
                continue
            if runs and begin - runs[-1][1] < self._pause:
                runs[-1][1] = end
            else:
                runs.append([begin, end])
        return tuple(Span(begin=begin, end=end) for begin, end in runs)


class User:
    """One session's user.

    Args:
        lines: in the order in which they are said.
        pace: how it waits.
        frame_s: the model's.
        frame_samples: the model's.
    """

    def __init__(self, lines: Sequence[Line], pace: Pace, frame_s: float, frame_samples: int) -> None:
        self.ending: Ending | None = None
        self._lines, self._pace, self._frame_s, self._size = lines, pace, frame_s, frame_samples
        self._track = Track(pace, frame_s)
        self._next, self._playing = 0, -1
        self._since = 0
        """Where the last line that wants an answer ended: onsets are looked for from here."""
        self._onset: int | None = None
        self._said: list[Said] = []
        self._began = 0
        self._frame = 0

    def frame(self) -> Samples:
        """The next frame of the user's audio."""
        if self._playing < 0:
            self._look()
        if self._playing < 0:
            return np.zeros(self._size, np.float32)
        samples = self._lines[self._playing].samples
        at = (self._frame - self._began) * self._size
        piece = samples[at : at + self._size]
        return np.pad(piece, (0, self._size - len(piece)))

    def hear(self, samples: Samples) -> None:
        """Takes the assistant's audio of the same frame; `ending` is set where the session is over."""
        self._track.hear(samples)
        self._frame += 1
        if self._playing >= 0:
            line = self._lines[self._playing]
            if (self._frame - self._began) * self._size >= len(line.samples):
                self._end_line(line)
        elif self._next == len(self._lines):
            self._wait_for_the_last_reply()
        if self.ending is None and self._frame >= self._frames(self._pace.limit_s):
            self.ending = "too_long"

    def course(self, pieces: Sequence[tuple[int, str]]) -> Course:
        """What happened; `pieces` are the assistant's."""
        assert self.ending is not None
        return Course(
            frame_s=self._frame_s,
            frames=self._frame,
            ending=self.ending,
            lines=tuple(self._said),
            speech=self._track.runs(),
            pieces=tuple(pieces),
        )

    def _frames(self, seconds: float) -> int:
        return frames_of(seconds, self._frame_s)

    def _end_line(self, line: Line) -> None:
        self._said.append(Said(kind=line.timing.kind, span=Span(begin=self._began, end=self._frame)))
        self._playing = -1
        if line.timing.kind != "distractor":
            self._since, self._onset = self._frame, None

    def _find_onset(self) -> int | None:
        if self._onset is None:
            self._onset = self._track.onset(self._since)
        return self._onset

    def _look(self) -> None:
        """Begins the next line if it is due in this frame, or ends the session if it never will be."""
        if self._next == len(self._lines) or self.ending is not None:
            return
        timing = self._lines[self._next].timing
        delay = self._frames(timing.delay_s)
        if timing.after == "start":
            due = self._frame >= delay
        elif (onset := self._find_onset()) is None:
            due = False
            if self._frame - self._since >= self._frames(self._pace.patience_s):
                self.ending = "no_onset"
        elif timing.after == "onset":
            due = self._frame >= onset + delay
            if due and self._finished():
                due, self.ending = False, "not_interrupted"
        else:
            due = self._track.silent_frames >= max(delay, self._frames(self._pace.ended_s))
            if not due and self._frame - onset >= self._frames(self._pace.longest_s):
                self.ending = "never_finished"
        if due:
            self._playing, self._began, self._next = self._next, self._frame, self._next + 1

    def _finished(self) -> bool:
        return self._track.silent_frames >= self._frames(self._pace.ended_s)

    def _wait_for_the_last_reply(self) -> None:
        onset = self._find_onset()
        waited = self._frame - (self._since if onset is None else onset)
        most = self._pace.patience_s if onset is None else self._pace.longest_s
        if (onset is not None and self._finished()) or waited >= self._frames(most):
            self.ending = "complete"
