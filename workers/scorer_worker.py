"""A scorer in a worker: reads reply speech from the store ahead, scores batches.

Invariant: for every reply exactly one score under each of the scorer's metric names, finite or with a status and a
reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import audio
from farm.store import Store, StoreError
from farm.types import Failure, Item, Reply, Score, Scorer, ScorerSpec, ScoreStatus, Waveform
from workers.batches import Done

Heard = tuple[Item, Reply]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A reply that is to be scored, as its row tells it: without its speech."""

    trial_id: str
    attempt: int
    turn: int
    cell_id: str
    item: Item
    reply: Reply
    speech_uri: str | None
    speech_seconds: float


class ScorerBody:
    """What `workers.host.Host` hosts for one scorer."""

    def __init__(self, spec: ScorerSpec, store: Store) -> None:
        self.name = spec.name
        self.threads = spec.workers.hear_threads
        self.limit = spec.workers.max_batch
        self._spec = spec
        self._store = store
        self._scorer: Scorer

    def load(self, worker: str) -> None:
        """Instantiates the scorer; on a GPU where its pool asks for one, else wherever it likes."""
        from hydra.utils import instantiate

        device = {"device": "cuda"} if self._spec.workers.num_gpus > 0 else {}
        self._scorer = instantiate(dict(self._spec.scorer), **device)

    def prepare(self, answered: Answered) -> Heard:
        """The item and the reply, with its speech where it has some.

        Raises:
            ValueError: the speech is gone or cannot be decoded.
        """
        reply, uri = answered.reply, answered.speech_uri
        speech = self._speech(uri) if uri else None
        return answered.item, Reply(
            text=reply.text,
            speech=speech,
            events=reply.events,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            truncated=reply.truncated,
        )

    def _speech(self, uri: str) -> Waveform:
        try:
            return audio.decode(self._store.get(uri), uri)
        except FileNotFoundError as error:
            raise ValueError(f"{uri}: the reply's speech is not in the store") from error
        except StoreError as error:
            raise ValueError(f"{uri}: {error}") from error

    def work(self, heard: Sequence[Heard]) -> list[list[Score] | Failure]:
        """The scores of a batch of replies."""
        return [self._checked(scores) for scores in self._scorer.score(heard)]

    def _checked(self, scores: Sequence[Score]) -> list[Score] | Failure:
        names, wanted = sorted(s.name for s in scores), sorted(m.name for m in self._spec.metrics)
        if names != wanted:
            return Failure(kind="model_error", message=f"scored {names}; conf/scorer says {wanted}")
        return [_finite(score) for score in scores]

    def finish(self, answered: Answered, heard: Heard | Failure, done: Done[list[Score]]) -> list[Score]:
        """The scores of one reply."""
        return refused(self._spec, done.value) if isinstance(done.value, Failure) else done.value


def refused(spec: ScorerSpec, failure: Failure) -> list[Score]:
    """Every score of a reply that could not be scored.

    A scorer that cannot be loaded is `unavailable`, which the next run tries again; anything else has failed for good.
    """
    status: ScoreStatus = "unavailable" if failure.kind == "load_error" else "failed"
    reason = f"{failure.kind}: {failure.message}"
    return without_value(spec, status, reason)


def without_value(spec: ScorerSpec, status: ScoreStatus, reason: str) -> list[Score]:
    """One score without a value for each of a scorer's metrics."""
    return [
        Score(name=m.name, status=status, reason=reason, rater=spec.name, rater_kind="program")
        for m in spec.metrics
    ]


def _finite(score: Score) -> Score:
    numbers: Iterable[float | None] = (score.value, score.numerator, score.denominator)
    if all(number is None or math.isfinite(number) for number in numbers):
        return score
    reason = f"the scorer gave {score.value} ({score.numerator} / {score.denominator})"
    return Score(
        name=score.name, status="failed", reason=reason, rater=score.rater, rater_kind=score.rater_kind
    )
