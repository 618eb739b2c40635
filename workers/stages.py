"""The two stages of a sweep: a model that answers, a scorer that scores; each is a pool and what its results become.

Invariant: a trial or a reply counts as done when its rows are durable, not before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from farm import ids
from farm.plan import Plan, Progress
from farm.records import reply_row, score_id
from farm.store import Store, StoreError
from farm.types import Event, Failure, Item, ModelSpec, Outcome, Reply, Score, ScorerSpec, Trial
from workers.host import log_folder
from workers.keeper import Keeper, Row
from workers.model_worker import ModelBody
from workers.pool import Job, Pool
from workers.scorer_worker import Answered, ScorerBody, refused, without_value
from workers.status import Meter, StageStatus

RETRIED = frozenset({"unavailable", "judge_error"})
"""Statuses of scores that the next run tries again; every other one is final."""
MOST_WAITING = 20_000
"""Replies that wait for a scorer in the driver's memory; what is beyond is read from the store again later."""
BACKFILL_TRIALS = 50_000
"""Trials whose replies are looked through at once for missing scores."""


class AnswerStage:
    """One model's trials."""

    def __init__(
        self, plan: Plan, spec: ModelSpec, store: Store, keeper: Keeper, progress: Progress, again: bool
    ) -> None:
        cells = [cell for cell in plan.cells if cell.model.name == spec.name]
        self.name = spec.name
        self.planned = sum(plan.trials_in(cell) for cell in cells)
        done = progress.done if not again else ()
        self.skipped = sum(trial in done for cell in cells for trial in plan.trial_ids(cell)) if done else 0
        self.meter = Meter()
        self._plan, self._keeper = plan, keeper
        job = Job(
            body=ModelBody(spec, store),
            options=spec.workers,
            log_folder=log_folder(store),
            seconds=lambda trial: trial.request.seconds,
            keep=self._keep,
            fail=self._fail,
        )
        self.pool = Pool(job, plan.todo(spec, progress, again=again))

    def _keep(self, trials: Sequence[Trial], outcomes: Sequence[Outcome]) -> None:
        rows, unkept = [], ""
        for trial, outcome in zip(trials, outcomes, strict=True):
            failure = outcome.reply.failure
            if failure is not None and failure.kind == "store_error":
                unkept = failure.message
            else:
                rows.append(reply_row(self._plan, trial, outcome))
        self._keeper.replies(rows)
        if unkept:
            raise StoreError(unkept)

    def _fail(self, trial: Trial, failure: Failure, worker: str) -> None:
        outcome = Outcome(
            trial_id=trial.trial_id, attempt=trial.attempt, reply=Reply(failure=failure), worker=worker
        )
        self._keep([trial], [outcome])

    def count(self, rows: Sequence[Row]) -> None:
        """Counts durable rows; those of other models are not this stage's."""
        self.meter.add([row["failure_kind"] for row in rows if row["model"] == self.name])

    @property
    def left(self) -> int:
        """Trials not done yet."""
        return self.planned - self.skipped - self.meter.done

    def status(self) -> StageStatus:
        """As it is now."""
        return _status("answer", self.pool, self.meter, self.planned, self.skipped, self.left)


class ScoreStage:
    """One scorer's replies: fresh ones as they become durable, and those of earlier runs that lack its scores."""

    def __init__(self, plan: Plan, spec: ScorerSpec, store: Store, keeper: Keeper) -> None:
        self.name = spec.name
        self.skipped = 0
        self.meter = Meter()
        self._plan, self._spec, self._store, self._keeper = plan, spec, store, keeper
        self._gold: dict[tuple[str, str], str] = {}
        self._behind = False
        job = Job(
            body=ScorerBody(spec, store),
            options=spec.workers,
            log_folder=log_folder(store),
            seconds=lambda answered: answered.speech_seconds,
            keep=self._keep,
            fail=self._fail,
        )
        self.pool = Pool(job, self._backfill())
        self.pool.open = True

    def take(self, rows: Sequence[Row]) -> None:
        """Takes reply rows that have just become durable."""
        for row in rows:
            if len(self.pool.waiting) >= MOST_WAITING:
                self._behind = True
                return
            if row["failure_kind"] is None and (answered := self._answered(row)):
                self.pool.waiting.append(answered)

    def catch_up(self) -> None:
        """Looks through the store again for what did not fit into memory."""
        if self._behind and self.pool.source is None and not self.pool.queued and not self.pool.in_flight:
            self._behind, self.skipped = False, 0
            self.pool.source = self._backfill()

    @property
    def behind(self) -> bool:
        """Whether replies in the store still wait to be read again."""
        return self._behind

    def count(self, rows: Sequence[Row]) -> None:
        """Counts durable score rows of this scorer, a reply each."""
        first = self._spec.metrics[0].name
        mine = [row for row in rows if row["scorer"] == self.name and row["name"] == first]
        self.meter.add(
            [row["status"] if row["status"] in ("failed", "judge_error") else None for row in mine]
        )

    def status(self, upstream: int) -> StageStatus:
        """As it is now.

        Args:
            upstream: trials that may still become replies.
        """
        left = self.pool.queued + self.pool.in_flight + upstream
        planned = self.skipped + self.meter.done + left
        return _status("score", self.pool, self.meter, planned, self.skipped, left)

    # --- what is scored --------------------------------------------------------------------------------------------

    def _backfill(self) -> Iterator[Answered]:
        for cell_ids in _chunks(self._plan):
            yield from self._missing(cell_ids)

    def _missing(self, cell_ids: Sequence[str]) -> Iterator[Answered]:
        light = ["trial_id", "attempt", "turn", "cell_id", "task", "item_key", "failure_kind"]
        rows = self._store.replies(cell_ids=cell_ids, columns=light)
        if not rows.num_rows:
            return
        final = self._final(cell_ids)
        unscored = [number for number, row in enumerate(rows.to_pylist()) if self._lacks(row, final)]
        if not unscored:
            return
        wanted = [
            *light,
            "text",
            "events",
            "tokens_in",
            "tokens_out",
            "truncated",
            "speech_uri",
            "speech_seconds",
        ]
        whole = self._store.replies(cell_ids=cell_ids, columns=wanted).take(unscored)
        for row in whole.to_pylist():
            if answered := self._answered(row):
                yield answered

    def _lacks(self, row: Row, final: frozenset[str]) -> bool:
        known = (row["task"], row["item_key"]) in self._plan.by_key
        if row["failure_kind"] is not None or not known or not self._spec.scores(row["task"]):
            return False
        # The scores of one reply are appended together, so that the first one tells of all.
        scored = self._score_id(row, self._spec.metrics[0].name) in final
        self.skipped += scored
        return not scored

    def _final(self, cell_ids: Sequence[str]) -> frozenset[str]:
        """Ids of scores that need no second try, nor does any score of the same reply."""
        columns = ["score_id", "trial_id", "scorer", "status"]
        rows = self._store.scores(cell_ids=cell_ids, columns=columns).to_pylist()
        mine = [row for row in rows if row["scorer"] == self.name]
        again = {row["trial_id"] for row in mine if row["status"] in RETRIED}
        return frozenset(row["score_id"] for row in mine if row["trial_id"] not in again)

    def _answered(self, row: Row) -> Answered | None:
        """A reply row as a task; None where its scores need no scorer, or its item is not in the plan."""
        item = self._plan.by_key.get((row["task"], row["item_key"]))
        if item is None or not self._spec.scores(row["task"]):
            return None
        answered = _answered(row, item)
        model = self._plan.by_id[row["cell_id"]].model
        if self._spec.needs == "speech" and not model.capabilities.speech_out:
            scores = without_value(self._spec, "not_applicable", f"{model.name} answers without speech")
            self._keep([answered], [scores])
            return None
        return answered

    # --- what is kept ----------------------------------------------------------------------------------------------

    def _keep(self, answered: Sequence[Answered], scores: Sequence[Sequence[Score]]) -> None:
        rows = [self._row(a, score) for a, found in zip(answered, scores, strict=True) for score in found]
        self._keeper.scores(rows)

    def _fail(self, answered: Answered, failure: Failure, worker: str) -> None:
        self._keep([answered], [refused(self._spec, failure)])

    def _row(self, answered: Answered, score: Score) -> dict[str, Any]:
        key = {"trial_id": answered.trial_id, "attempt": answered.attempt, "turn": answered.turn}
        item = answered.item
        return {
            "score_id": self._score_id({**key, "task": item.task, "item_key": item.key}, score.name),
            **key,
            "cell_id": answered.cell_id,
            "benchmark": item.benchmark,
            "scorer": self.name,
            "scorer_version": self._spec.version,
            "rater": score.rater or self.name,
            "rater_kind": score.rater_kind,
            "name": score.name,
            "value": score.value,
            "label": score.label,
            "numerator": score.numerator,
            "denominator": score.denominator,
            "status": score.status,
            "reason": score.reason,
        }

    def _score_id(self, row: Row, name: str) -> str:
        key = (row["task"], row["item_key"])
        if key not in self._gold:
            self._gold[key] = ids.digest(self._plan.by_key[key].gold)
        return score_id(row["trial_id"], row["attempt"], row["turn"], self._spec, name, self._gold[key])


def _chunks(plan: Plan) -> Iterator[list[str]]:
    """The plan's cells, as many at a time as make a fair number of trials."""
    chunk: list[str] = []
    trials = 0
    for cell in plan.cells:
        chunk.append(cell.cell_id)
        trials += plan.trials_in(cell)
        if trials >= BACKFILL_TRIALS:
            yield chunk
            chunk, trials = [], 0
    if chunk:
        yield chunk


def _answered(row: Mapping[str, Any], item: Item) -> Answered:
    reply = Reply(
        text=row["text"],
        events=tuple(Event(**event) for event in row["events"] or ()),
        tokens_in=row["tokens_in"],
        tokens_out=row["tokens_out"],
        truncated=bool(row["truncated"]),
    )
    return Answered(
        trial_id=row["trial_id"],
        attempt=row["attempt"],
        turn=row["turn"],
        cell_id=row["cell_id"],
        item=item,
        reply=reply,
        speech_uri=row["speech_uri"],
        speech_seconds=row["speech_seconds"] or 0.0,
    )


def _status(stage: Any, pool: Pool, meter: Meter, planned: int, skipped: int, left: int) -> StageStatus:
    return StageStatus(
        stage=stage,
        name=pool.name,
        planned=planned,
        done=meter.done,
        failed=meter.failed,
        skipped=skipped,
        in_flight=pool.in_flight,
        workers_ready=sum(worker.state == "ready" for worker in pool.workers),
        state=_state(pool),
        rate_per_s=meter.rate_per_s,
        eta_s=meter.eta_s(left),
    )


def _state(pool: Pool) -> str:
    states = {worker.state for worker in pool.workers}
    if pool.broken:
        return f"failed: {pool.broken.message.splitlines()[0]}"
    if pool.finished:
        return "done"
    if "ready" in states:
        return "running"
    return "loading" if "loading" in states else "waiting"
