"""Plans stream trials whose ids depend on what is asked and on nothing else."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pytest

from farm import plan as planning
from farm.plan import Progress, Sweep
from farm.types import (
    AudioSegment,
    Capabilities,
    Condition,
    Item,
    ModelSpec,
    Prompt,
    Request,
    Stimulus,
    TextSegment,
    Wording,
)

CLEAN = Condition(name="clean", chain=())
NOISE = Condition(name="noise", chain=({"_target_": "audio.conditions.WhiteNoise", "snr_db": 10},))
P1 = Prompt(name="p1", strength="zero")
P2 = Prompt(name="p2", strength="basic")


def item(key: str, *, seconds: float = 2.0, sha256: str = "", gold: str = "") -> Item:
    audio = AudioSegment(role="question", path=f"{key}.wav", sha256=sha256 or f"sha-{key}", seconds=seconds)
    return Item(
        key=key,
        benchmark="bench",
        task="bench.task",
        unit=key,
        pair_id=key,
        stimulus=Stimulus(turns=((audio,),)),
        gold={"answer": gold},
    )


@dataclass(frozen=True)
class Questions:
    """A task of given items whose prompt is its name."""

    all: tuple[Item, ...]
    name: str = "bench.task"
    benchmark: str = "bench"

    def items(self) -> Iterator[Item]:
        return iter(self.all)

    def template(self, prompt: Prompt) -> str:
        return prompt.system or ""

    def request(self, item: Item, prompt: Prompt) -> Request:
        return Request(system=f"{prompt.name}: {prompt.system or ''}", turns=item.stimulus.turns)


def model(name: str = "model", checkpoint: str = "c" * 64) -> ModelSpec:
    return ModelSpec(
        name=name,
        adapter={"_target_": "m"},
        checkpoint=checkpoint,
        versions={"m": "1"},
        identity={"_target_": "m", "temperature": 0.7},
        capabilities=Capabilities(text_out=True, speech_out=False),
    )


def sweep(**changes: object) -> Sweep:
    base = Sweep(
        models=(model(),),
        tasks=(Questions((item("a"), item("b", seconds=5.0), item("c", seconds=1.0))),),
        prompts=(P1, P2),
        conditions=(CLEAN, NOISE),
        scorers=(),
        repeats=2,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def all_ids(chosen: Sweep) -> list[str]:
    plan = planning.make(chosen)
    return [trial_id for cell in plan.cells for trial_id in plan.trial_ids(cell)]


def test_every_trial_of_the_product_is_planned_once() -> None:
    chosen = sweep()
    plan = planning.make(chosen)
    trials = list(plan.todo(chosen.models[0], Progress()))
    assert len(plan.cells) == 4
    assert plan.trials == len(trials) == 4 * 3 * 2
    assert len({t.trial_id for t in trials}) == len(trials)
    assert sorted(t.trial_id for t in trials) == sorted(all_ids(chosen))


def test_items_with_the_longest_audio_come_first() -> None:
    chosen = sweep()
    keys = [t.item_key for t in planning.make(chosen).todo(chosen.models[0], Progress())]
    assert keys[:6] == ["b", "b", "a", "a", "c", "c"]


def test_done_trials_are_skipped_and_failed_ones_come_again_with_the_next_attempt() -> None:
    chosen = sweep()
    ids = all_ids(chosen)
    progress = Progress(done=set(ids[1:]) - {ids[5]}, attempts={ids[5]: 2})
    todo = {t.trial_id: t.attempt for t in planning.make(chosen).todo(chosen.models[0], progress)}
    assert todo == {ids[0]: 1, ids[5]: 3}


def test_again_runs_done_trials_once_more() -> None:
    chosen = sweep()
    ids = all_ids(chosen)
    progress = Progress(done=set(ids), attempts=dict.fromkeys(ids, 1))
    todo = list(planning.make(chosen).todo(chosen.models[0], progress, again=True))
    assert {t.attempt for t in todo} == {2}
    assert len(todo) == len(ids)


@pytest.mark.parametrize(
    "more",
    [
        {"repeats": 5},
        {"models": (model(), model("other", "d" * 64))},
        {"prompts": (P1, P2, Prompt(name="p3", strength="enhanced"))},
        {"conditions": (CLEAN, NOISE, Condition(name="quiet", chain=({"_target_": "g", "gain_db": -12},)))},
        {"tasks": (Questions(tuple(item(k) for k in "abcdef")),)},
    ],
)
def test_a_larger_sweep_only_adds_trials(more: dict[str, object]) -> None:
    before = set(all_ids(sweep(tasks=(Questions(tuple(item(k) for k in "abc")),))))
    base = {"tasks": (Questions(tuple(item(k) for k in "abc")),)}
    after = set(all_ids(sweep(**{**base, **more})))
    assert before < after


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"tasks": (Questions((item("a", gold="relabelled"),)),)}, True),
        ({"tasks": (Questions((item("a", sha256="other bytes"),)),)}, False),
        ({"conditions": (Condition(name="clean", chain=({"_target_": "x"},)),)}, False),
        ({"conditions": (Condition(name="clean", chain=(), versions={"x": "2"}),)}, False),
        ({"prompts": (Prompt(name="p1", strength="zero", system="edited"),)}, False),
        ({"models": (model(checkpoint="d" * 64),)}, False),
        ({"models": (replace(model(), versions={"m": "2"}),)}, False),
        ({"models": (replace(model(), identity={"_target_": "m", "temperature": 0.8}),)}, False),
        ({"replicate": "canary"}, False),
    ],
)
def test_a_trial_id_changes_with_what_is_asked_and_not_with_gold(
    change: dict[str, object], same: bool
) -> None:
    base = {"tasks": (Questions((item("a"),)),), "prompts": (P1,), "conditions": (CLEAN,), "repeats": 1}
    assert (all_ids(sweep(**base)) == all_ids(sweep(**{**base, **change}))) is same


def test_a_text_segment_enters_the_id() -> None:
    def with_text(text: str) -> Item:
        return replace(item("a"), stimulus=Stimulus(turns=((TextSegment(role="question", text=text),),)))

    one, two = (all_ids(sweep(tasks=(Questions((with_text(t),)),))) for t in ("one", "two"))
    assert not set(one) & set(two)


def test_condition_seeds_are_shared_by_models_and_prompts_but_not_by_items_or_repeats() -> None:
    chosen = sweep(models=(model(), model("other", "d" * 64)))
    plan = planning.make(chosen)
    trials = [t for m in chosen.models for t in plan.todo(m, Progress()) if t.condition.name == "noise"]
    seeds: dict[tuple[str, int], set[int]] = {}
    for trial in trials:
        seeds.setdefault((trial.item_key, trial.repeat), set()).add(trial.condition_seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len({next(iter(found)) for found in seeds.values()}) == len(seeds)


def test_sampling_seeds_differ_between_repeats_and_not_between_models() -> None:
    chosen = sweep(models=(model(), model("other", "d" * 64)), prompts=(P1,), conditions=(CLEAN,))
    plan = planning.make(chosen)
    by_model = [
        [(t.item_key, t.repeat, t.request.seed) for t in plan.todo(m, Progress())] for m in chosen.models
    ]
    assert by_model[0] == by_model[1]
    assert len({seed for _, _, seed in by_model[0]}) == len(by_model[0])


def test_ids_are_the_same_in_another_process() -> None:
    code = "from tests.farm.test_plan import all_ids, sweep; print(','.join(all_ids(sweep())))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": "."}
    )
    assert out.stdout.strip().split(",") == all_ids(sweep())


def test_a_task_without_items_or_with_a_doubled_key_is_refused() -> None:
    with pytest.raises(ValueError, match="no items"):
        planning.make(sweep(tasks=(Questions(()),)))
    with pytest.raises(ValueError, match="share one key"):
        planning.make(sweep(tasks=(Questions((item("a"), item("a"))),)))


def test_limit_takes_the_first_items_of_a_task() -> None:
    plan = planning.make(sweep(limit=2))
    assert {i.key for i in plan.items["bench.task"]} == {"a", "b"}


@dataclass(frozen=True)
class Varied(Questions):
    """A task with an arm, words left to the model, and perhaps a prompt of its own."""

    prompts: tuple[Prompt, ...] = ()
    arms: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"cue": ("none", "oracle")})
    cue: str = ""
    voice: str = ""

    def varied(self, arm: Mapping[str, str], wording: Wording) -> "Varied":
        return replace(self, cue=arm.get("cue", ""), voice=wording.default_system or "")

    def request(self, item: Item, prompt: Prompt) -> Request:
        return Request(system=f"{prompt.name} {self.voice} {self.cue}", turns=item.stimulus.turns)


ABC = tuple(item(k) for k in "abc")
OWN = Prompt(name="own", strength="own")


def test_an_arm_crosses_like_a_prompt_and_its_default_is_left_out() -> None:
    plan = planning.make(sweep(tasks=(Varied(ABC),), arms={"cue": ("none", "oracle")}))
    assert [dict(cell.arm) for cell in plan.cells if cell.prompt == P1 and cell.condition == CLEAN] == [
        {},
        {"cue": "oracle"},
    ]
    assert len(plan.cells) == 8
    systems = {(c.prompt.name, *c.arm.values()): plan.asked(c)[0].request.system for c in plan.cells}
    assert systems["p1",] == "p1  " and systems["p1", "oracle"] == "p1  oracle"


def test_an_arm_at_its_default_changes_no_id_and_another_value_only_adds_trials() -> None:
    without = set(all_ids(sweep(tasks=(Varied(ABC),))))
    assert set(all_ids(sweep(tasks=(Varied(ABC),), arms={"cue": ("none",)}))) == without
    both = set(all_ids(sweep(tasks=(Varied(ABC),), arms={"cue": ("none", "oracle")})))
    assert without < both and len(both) == 2 * len(without)


def test_a_task_without_an_arm_does_not_cross_it() -> None:
    tasks = Varied(ABC), Questions(ABC, name="bench.plain")
    plan = planning.make(sweep(tasks=tasks, arms={"cue": ("none", "oracle")}))
    assert [len([c for c in plan.cells if c.task == t.name]) for t in tasks] == [8, 4]


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ({"queue": ("oracle",)}, "arms.queue: of the chosen tasks none has it; there is cue"),
        ({"cue": ("orakel",)}, "arms.cue=.*one or more of none, oracle"),
        ({"cue": ()}, "arms.cue=.*one or more of none, oracle"),
    ],
)
def test_an_arm_that_no_task_has_is_refused_with_those_there_are(
    arms: dict[str, tuple[str, ...]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        planning.make(sweep(tasks=(Varied(ABC),), arms=arms))


def test_a_task_with_a_prompt_of_its_own_does_not_cross_the_sweeps() -> None:
    own = Varied(ABC, name="bench.own", prompts=(OWN,))
    plan = planning.make(sweep(tasks=(Questions(ABC), own)))
    prompts = {
        task: {c.prompt.name for c in plan.cells if c.task == task} for task in ("bench.task", "bench.own")
    }
    assert prompts == {"bench.task": {"p1", "p2"}, "bench.own": {"own"}}
    assert plan.trials == 4 * 3 * 2 + 2 * 3 * 2


def test_each_model_is_asked_in_its_own_words() -> None:
    worded = replace(model("qwen", "d" * 64), wording=Wording(default_system="You are Qwen."))
    plan = planning.make(sweep(models=(model(), worded), tasks=(Varied(ABC),)))
    asked = {cell.model.name: plan.asked(cell)[0].request.system for cell in plan.cells if cell.prompt == P1}
    assert asked == {"model": "p1  ", "qwen": "p1 You are Qwen. "}
