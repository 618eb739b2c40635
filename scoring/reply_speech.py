"""What the quality scorers share: which speech can be scored at all, at which rate, and how a verdict becomes scores.

Invariant: every reply gets exactly one score for each of a scorer's names: a finite value, or a status with a reason.
Replies are judged one by one, so no score depends on its neighbours in a batch. Imports no torch.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from audio import resample
from farm.types import Item, Reply, Score, ScoreStatus, Waveform

MIN_SECONDS = 0.25
"""Shorter than a spoken word: an opinion score of it says nothing, and the networks' windows begin to fail."""
MIN_RATE_HZ = 8000
"""Telephone speech; below it there is no speech band left to judge."""
SILENCE_PEAK = 1e-4
"""-80 dBFS, three steps of 16-bit audio: nothing above it, after the mean is taken off, is silence (or DC)."""


UNLOADABLE = (OSError, EOFError, RuntimeError, LookupError, AttributeError, TypeError, pickle.UnpicklingError)
"""What `torch.load` and a strict `load_state_dict` raise for a file that is not the network's weights."""


class Unscorable(Exception):
    """This speech has no score under this scorer; the message is the score's reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a scorer found in one reply's speech."""

    values: tuple[float, ...]
    """One for each of the scorer's names, in their order."""
    label: str | None = None
    """What a reader has to know beside the value: `mean of 2 windows`."""
    warning: str = ""
    """What a reader of the metric must know; it becomes the scores' reason, and a footnote of the leaderboard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The scores that a scorer gives and who gives them."""

    names: tuple[str, ...]
    """`quality/nisqa_mos`, ..."""
    rater: str
    """`nisqa_v2@7ec4cf9`: the network and the first digits of its weights' SHA-256."""

    def refuse(self, status: ScoreStatus, reason: str) -> list[Score]:
        """One score without a value for each name."""
        return [Score(name=name, status=status, reason=reason, rater=self.rater) for name in self.names]

    def accept(self, verdict: Verdict) -> list[Score]:
        """One score with a value for each name; `failed` where the network gave no number."""
        assert len(verdict.values) == len(self.names)
        if not all(map(math.isfinite, verdict.values)):
            return self.refuse("failed", f"{self.rater} gave {verdict.values}")
        return [
            Score(
                name=name, value=float(value), label=verdict.label, reason=verdict.warning, rater=self.rater
            )
            for name, value in zip(self.names, verdict.values, strict=True)
        ]


def score_each(
    heard: Sequence[tuple[Item, Reply]], scale: Scale, judge: Callable[[Waveform], Verdict] | str
) -> list[list[Score]]:
    """Scores a batch of replies one by one.

    Args:
        heard: items and what was answered to them.
        scale: the names and the rater of the scores.
        judge: gives a verdict on finite speech within full scale, or raises `Unscorable`; or, where the weights are
            missing, the reason with the command that brings them.

    Returns:
        For each reply, in order, one score for each of the scale's names.
    """
    if isinstance(judge, str):
        return [scale.refuse("unavailable", judge) for _ in heard]
    return [_score(reply, scale, judge) for _, reply in heard]


def _score(reply: Reply, scale: Scale, judge: Callable[[Waveform], Verdict]) -> list[Score]:
    if reply.failure:
        return scale.refuse("failed", f"no reply: {reply.failure.kind}")
    if reply.speech is None:
        return scale.refuse("not_applicable", "the reply has no speech")
    if not np.isfinite(reply.speech.samples).all():
        return scale.refuse("failed", "the speech has samples that are not finite")
    try:
        return scale.accept(judge(_checked(reply.speech)))
    except Unscorable as why:
        return scale.refuse("not_applicable", str(why))


def _checked(speech: Waveform) -> Waveform:
    """The speech within full scale, as a converter would play it; `Unscorable` where there is nothing to judge."""
    assert speech.samples.ndim == 1
    if speech.sample_rate_hz < MIN_RATE_HZ:
        raise Unscorable(f"sampled at {speech.sample_rate_hz} Hz, below {MIN_RATE_HZ} Hz")
    if speech.seconds < MIN_SECONDS:
        raise Unscorable(f"{speech.seconds:.2f} s of speech, shorter than {MIN_SECONDS} s")
    samples = np.clip(speech.samples, -1, 1).astype(np.float32)
    if np.abs(samples - samples.mean(dtype=np.float64)).max() < SILENCE_PEAK:
        raise Unscorable("silent (below -80 dBFS throughout)")
    return replace(speech, samples=samples)


def at_rate(speech: Waveform, sample_rate_hz: int) -> Waveform:
    """The speech at another rate, within full scale: filters overshoot on clipped speech."""
    resampled = resample(speech, sample_rate_hz)
    return replace(resampled, samples=np.clip(resampled.samples, -1, 1))


def judge_windows(
    speech: Waveform, max_seconds: float, judge: Callable[[Waveform], Sequence[float]]
) -> Verdict:
    """A verdict on speech of any length: the mean over the fewest equal windows that are no longer than `max_seconds`.

    The label says so where there is more than one; windows of pure silence are judged like any other.
    """
    count = max(1, math.ceil(speech.seconds / max_seconds))
    windows = np.array_split(speech.samples, count)
    values = np.mean([judge(replace(speech, samples=window)) for window in windows], axis=0)
    label = f"mean of {count} windows" if count > 1 else None
    return Verdict(values=tuple(map(float, values)), label=label)


def package_folder(package: str) -> Path | None:
    """Where an installed package lies, found without importing it; None where it is not installed."""
    spec = find_spec(package)
    return Path(next(iter(spec.submodule_search_locations or []))) if spec else None


def not_weights(path: Path, network: str, error: Exception, command: str) -> str:
    """The reason for a file that could not be loaded, in one line with the command that brings the right one."""
    found = " ".join(str(error).split())[:200]
    return f"{path} is not {network} ({type(error).__name__}: {found}): {command}"


def warm_up(judge: Callable[[Waveform], object]) -> None:
    """Judges a second of silence: libraries that import or compile at first use do so while the scorer loads."""
    judge(Waveform(samples=np.zeros(24000, dtype=np.float32), sample_rate_hz=24000))
