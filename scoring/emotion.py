"""EmoAlign: whether the emotion heard in a reply's speech is the one that the reference answer would carry.

EchoMind, arXiv 2510.22758, section 4.2.4.3.4. The paper's own script is not published, and readings of the metric
differ between papers: values are not comparable with published ones.

Invariant: a reply whose emotion the recogniser does not know is `unparsed`, not aligned; without weights or without a
gold emotion there is no score but `unavailable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from farm.types import Failure, Item, Reply, Score, ScoreStatus
from scoring.weights import fingerprint, missing
from speech.emotion import UNKNOWN, Emotion, label

METRIC = "emotion/align"
NO_GOLD = (
    "the data set names no emotion for this reply: build one with python jobs/build.py benchmark=echomind"
)


class EmoAlign:
    """One recogniser of emotions.

    Args:
        recogniser: `_target_` and arguments of a class with `recognise(waveforms)` (`speech.emotion.Emotion2Vec`).
        device: Where it runs.
    """

    version = "1"

    def __init__(self, *, recogniser: Mapping[str, Any], device: str = "cpu") -> None:
        from hydra.utils import instantiate

        self._missing = missing(recogniser)
        weights = fingerprint(recogniser)
        self._rater = f"{recogniser['_target_'].rsplit('.', 1)[-1]}@{weights[:7]}" if weights else "emotion"
        self._recogniser: Any = None if self._missing else instantiate(dict(recogniser), device=device)

    @classmethod
    def weights_fingerprint(cls, config: Mapping[str, Any]) -> str:
        """Of the recogniser's checkpoint; empty where it is missing."""
        return fingerprint(config["recogniser"])

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """One score a reply: 1 where the emotions are the same."""
        if self._missing:
            return [[self._without("unavailable", self._missing)] for _ in heard]
        spoken = [reply.speech for _, reply in heard if reply.speech is not None]
        emotions = iter(self._recogniser.recognise(spoken) if spoken else [])
        return [
            [self._one(item, next(emotions) if reply.speech is not None else None)] for item, reply in heard
        ]

    def _one(self, item: Item, found: Emotion | Failure | None) -> Score:
        if found is None:
            return self._without("not_applicable", "the reply has no speech")
        if not item.gold.get("emotion"):
            return self._without("unavailable", NO_GOLD)
        if isinstance(found, Failure):
            return self._without("failed", found.message)
        if found.label == UNKNOWN:
            return self._without("unparsed", "the recogniser knows no emotion in it")
        aligned = found.label == label(str(item.gold["emotion"]))
        return Score(name=METRIC, value=float(aligned), label=found.label, rater=self._rater)

    def _without(self, status: ScoreStatus, reason: str) -> Score:
        return Score(name=METRIC, status=status, reason=reason, rater=self._rater)
