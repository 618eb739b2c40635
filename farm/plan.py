"""From what a sweep chooses to its cells and trials, streaming: a trial exists as a position until it is dealt out.

Invariant: planning imports no model, decodes no audio and holds no list of trials; memory grows with items x prompts,
not with trials. The same choices give the same ids, in the same order, in every process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from farm import ids
from farm.types import (
    Cell,
    Condition,
    Item,
    ModelSpec,
    Prompt,
    Request,
    ScorerSpec,
    Task,
    Trial,
    VariedTask,
    Wording,
)

WINDOW = 256
"""Items that travel together through all cells: long enough to bucket by length, short enough that every cell shows
scores early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What one configuration chooses."""

    models: tuple[ModelSpec, ...]
    tasks: tuple[Task, ...]
    prompts: tuple[Prompt, ...]
    conditions: tuple[Condition, ...]
    scorers: tuple[ScorerSpec, ...]
    repeats: int = 1
    limit: int | None = None
    """Items a task at most."""
    replicate: str = ""
    arms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Arm -> its values, which cross like prompts (of the tasks that have it): `{"cue": ("none", "oracle")}`."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ask all items of a task: cells that differ in model or condition alone share it."""

    task: str
    prompt: Prompt
    arm: tuple[tuple[str, str], ...]
    wording: Wording


@dataclass(frozen=True, slots=True)
class Asked:
    """One item asked in one way: its request and the digest that enters the ids."""

    request: Request
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a result store holds already."""

    done: frozenset[str] | set[str] = frozenset()
    """Ids of trials with a reply."""
    attempts: Mapping[str, int] = field(default_factory=dict)
    """Attempts so far of trials that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Every cell of a sweep, and its trials on demand."""

    sweep_id: str
    cells: tuple[Cell, ...]
    items: Mapping[str, tuple[Item, ...]]
    """Task -> its items, longest audio first, so that batches pad little and memory is tried early."""
    ways: Mapping[Way, tuple[Asked, ...]]
    """The items' requests, in the order of `items`."""
    repeats: int
    replicate: str
    by_id: Mapping[str, Cell]
    by_key: Mapping[tuple[str, str], Item]
    """(task, item key) -> item."""

    @property
    def trials(self) -> int:
        """Number of trials planned."""
        return sum(self.trials_in(cell) for cell in self.cells)

    def trials_in(self, cell: Cell) -> int:
        """Number of trials of one cell."""
        return len(self.items[cell.task]) * self.repeats

    def asked(self, cell: Cell) -> tuple[Asked, ...]:
        """The requests of one cell, in the order of its task's items."""
        return self.ways[_way(cell)]

    def item_of(self, trial: Trial) -> Item:
        """The item that a trial asks."""
        return self.by_key[self.by_id[trial.cell_id].task, trial.item_key]

    def trial_ids(self, cell: Cell) -> Iterator[str]:
        """Ids of one cell's trials."""
        trial_id = ids.TrialIds(cell, self.replicate).trial_id
        for asked in self.asked(cell):
            for repeat in range(self.repeats):
                yield trial_id(asked.digest, repeat)

    def todo(self, model: ModelSpec, progress: Progress, *, again: bool = False) -> Iterator[Trial]:
        """One model's trials that are still to be run.

        Args:
            model: whose cells.
            progress: what is there already; failed trials come again with the next attempt number.
            again: also those that are done (`progress.attempts` must count their attempts).
        """
        cells = [c for c in self.cells if c.model.name == model.name]
        for task in dict.fromkeys(c.task for c in cells):
            hashers = [(c, ids.TrialIds(c, self.replicate)) for c in cells if c.task == task]
            for start in range(0, len(self.items[task]), WINDOW):
                for cell, hasher in hashers:
                    yield from self._window(cell, hasher, start, progress, again)

    def _window(
        self, cell: Cell, hasher: ids.TrialIds, start: int, progress: Progress, again: bool
    ) -> Iterator[Trial]:
        items = self.items[cell.task][start : start + WINDOW]
        asked = self.asked(cell)[start : start + WINDOW]
        for item, question in zip(items, asked, strict=True):
            for repeat in range(self.repeats):
                trial_id = hasher.trial_id(question.digest, repeat)
                if again or trial_id not in progress.done:
                    attempt = progress.attempts.get(trial_id, 0) + 1
                    yield _trial(cell, hasher, item, question, repeat, attempt, trial_id)


def _trial(
    cell: Cell, hasher: ids.TrialIds, item: Item, asked: Asked, repeat: int, attempt: int, trial_id: str
) -> Trial:
    return Trial(
        trial_id=trial_id,
        cell_id=cell.cell_id,
        item_key=item.key,
        request=Request(
            system=asked.request.system,
            turns=asked.request.turns,
            trial_id=trial_id,
            seed=hasher.sampling_seed(asked.digest, repeat),
            joined=asked.request.joined,
        ),
        condition=cell.condition,
        condition_seed=hasher.condition_seed(item.key, repeat),
        repeat=repeat,
        attempt=attempt,
    )


def make(sweep: Sweep) -> Plan:
    """Plans a sweep.

    Raises:
        ValueError: a task's data is wrong, has no items, or has two items with one key; no task has an arm, or a value.
    """
    _check_arms(sweep)
    items = {task.name: _items(task, sweep.limit) for task in sweep.tasks}
    cells: list[Cell] = []
    ways: dict[Way, tuple[Asked, ...]] = {}
    for model, task in product(sweep.models, sweep.tasks):
        for prompt, arm in product(_prompts(task, sweep), _arms(task, sweep)):
            asked = task.varied(arm, model.wording) if isinstance(task, VariedTask) else task
            of_way = [_cell(model, asked, prompt, c, arm, sweep.replicate) for c in sweep.conditions]
            cells += of_way
            if of_way and (way := _way(of_way[0])) not in ways:
                ways[way] = tuple(_asked(asked, item, prompt) for item in items[task.name])
    return _plan(sweep, tuple(cells), items, ways)


def _plan(
    sweep: Sweep,
    cells: tuple[Cell, ...],
    items: Mapping[str, tuple[Item, ...]],
    ways: Mapping[Way, tuple[Asked, ...]],
) -> Plan:
    return Plan(
        sweep_id=_sweep_id(cells, items, sweep),
        cells=cells,
        items=items,
        ways=ways,
        repeats=sweep.repeats,
        replicate=sweep.replicate,
        by_id={cell.cell_id: cell for cell in cells},
        by_key={(task, item.key): item for task, group in items.items() for item in group},
    )


def _items(task: Task, limit: int | None) -> tuple[Item, ...]:
    chosen = [item for item, _ in zip(task.items(), range(limit), strict=False)] if limit else [*task.items()]
    if not chosen:
        raise ValueError(f"{task.name}: no items; check its data folder and the voices chosen")
    if len({item.key for item in chosen}) < len(chosen):
        raise ValueError(f"{task.name}: two items share one key")
    return tuple(sorted(chosen, key=lambda item: -item.seconds))


def _prompts(task: Task, sweep: Sweep) -> tuple[Prompt, ...]:
    own = task.prompts if isinstance(task, VariedTask) else ()
    return own or sweep.prompts


def _arms(task: Task, sweep: Sweep) -> list[dict[str, str]]:
    """Every combination of the arms that the task has, defaults left out."""
    known = task.arms if isinstance(task, VariedTask) else {}
    values = [[(name, value) for value in sweep.arms[name]] for name in known if name in sweep.arms]
    return [{name: v for name, v in chosen if v != known[name][0]} for chosen in product(*values)]


def _check_arms(sweep: Sweep) -> None:
    known: dict[str, tuple[str, ...]] = {}
    for task in sweep.tasks:
        known |= task.arms if isinstance(task, VariedTask) else {}
    for name, values in sweep.arms.items():
        if name not in known:
            offered = ", ".join(known) or "none"
            raise ValueError(f"arms.{name}: of the chosen tasks none has it; there is {offered}")
        if not values or not set(values) <= set(known[name]):
            raise ValueError(f"arms.{name}={list(values)}: one or more of {', '.join(known[name])}")


def _way(cell: Cell) -> Way:
    return Way(cell.task, cell.prompt, tuple(sorted(cell.arm.items())), cell.model.wording)


def _asked(task: Task, item: Item, prompt: Prompt) -> Asked:
    request = task.request(item, prompt)
    return Asked(request, ids.request_digest(request))


def _cell(
    model: ModelSpec,
    task: Task,
    prompt: Prompt,
    condition: Condition,
    arm: Mapping[str, str],
    replicate: str,
) -> Cell:
    cell = Cell(
        cell_id="",
        model=model,
        benchmark=task.benchmark,
        task=task.name,
        prompt=prompt,
        template=task.template(prompt),
        condition=condition,
        arm=arm,
    )
    return replace(cell, cell_id=ids.cell_id(cell, replicate))


def _sweep_id(cells: Sequence[Cell], items: Mapping[str, tuple[Item, ...]], sweep: Sweep) -> str:
    keys = {task: sorted(item.key for item in group) for task, group in items.items()}
    chosen = [sorted(cell.cell_id for cell in cells), keys, sweep.repeats, sweep.replicate]
    return ids.digest(chosen)[:12]
