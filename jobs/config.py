"""The border between Hydra and the farm: a composed configuration in, frozen dataclasses out.

Invariant: nothing below `jobs/` sees a DictConfig, and everything that a user can get wrong in a configuration is found
here, all of it at once, before a model is loaded or Ray is started. Imports no torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from hydra.errors import InstantiationException
from hydra.utils import get_class, instantiate
from omegaconf import DictConfig, OmegaConf

from audio.conditions import build as build_chain
from farm import ids
from farm.checkpoints import local
from farm.digests import file_digest, folder_digest
from farm.plan import Sweep
from farm.types import (
    Capabilities,
    Condition,
    Instruction,
    MetricSpec,
    ModelSpec,
    Prompt,
    ScorerSpec,
    Task,
    Wording,
    WorkerOptions,
)
from jobs.checks import arguments, build, environment

Built = TypeVar("Built")

ROOT = Path(__file__).resolve().parents[1]
"""The repository: where `${repo:...}` paths of the configuration begin."""


WITHOUT_EFFECT = ("server", "resources")
"""Arguments of adapters that change no reply, so that they are in no trial's id: where a model is served, and what of a
machine it may use."""


def register_resolvers() -> None:
    """Makes `${repo:weights}` mean the folder `weights` of the repository, wherever the command is started."""
    OmegaConf.register_new_resolver("repo", lambda name: str(ROOT / name), replace=True)


def unknown_options(arguments: Sequence[str]) -> list[str]:
    """What a command line chooses that is no option: Hydra itself names the valid ones for a single choice only.

    Args:
        arguments: of the command line; choices such as `model=[a,b]` are looked up in `conf/model/`, everything else
            is left to Hydra.
    """
    chosen = [a.partition("=") for a in arguments if re.fullmatch(r"\w+=\[[\w,\s]*\]", a)]
    problems = []
    for group, _, value in chosen:
        offered = sorted(path.stem for path in (ROOT / "conf" / group).glob("*.yaml"))
        names = [name for name in re.split(r"[\[\],\s]+", value) if name]
        unknown = [name for name in names if offered and name not in offered]
        if unknown:
            problems.append(
                f"{group}={value}: no option {', '.join(unknown)}; there are {', '.join(offered)}"
            )
    return problems


def sweep(config: DictConfig) -> Sweep:
    """The sweep that a composed configuration describes.

    Raises:
        ValueError: with every problem found, one a line.
    """
    chosen = plain(config)
    problems: list[str] = []
    problems += _scalar_problems(chosen)
    problems += _empty_choices(chosen)
    models = _options(problems, model_spec, chosen.get("models", {}))
    prompts = _options(problems, prompt, chosen.get("prompts", {}))
    conditions = _options(problems, condition, chosen.get("conditions", {}))
    judged = _collect(problems, by_judge, chosen.get("scorers", {}), chosen.get("judges", {})) or {}
    scorers = _options(problems, scorer_spec, judged)
    chosen_tasks = _collect(problems, tasks, chosen)
    chosen_arms = _collect(problems, arms, chosen.get("arms", {}), chosen["benchmark"]["tasks"])
    if problems:
        raise ValueError("\n".join(problems))
    return Sweep(
        models=models,
        tasks=chosen_tasks or (),
        prompts=prompts,
        conditions=conditions,
        scorers=scorers,
        repeats=chosen["repeats"],
        limit=chosen["limit"],
        replicate=chosen["replicate"],
        arms=chosen_arms or {},
    )


def settings(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Settings of a job that chooses no options: `conf/NAME.yaml` with `key=value` arguments laid over it.

    Raises:
        ValueError: an argument of another shape, or a key that the file has not.
    """
    register_resolvers()
    base = OmegaConf.load(ROOT / "conf" / f"{name}.yaml")
    given = [argument.partition("=") for argument in arguments]
    if wrong := [f"{key}{sign}{value}" for key, sign, value in given if not sign or key not in base]:
        raise ValueError(f"{', '.join(wrong)}: settings are {', '.join(f'{key!s}=...' for key in base)}")
    merged = OmegaConf.merge(base, OmegaConf.from_dotlist(list(arguments)))
    assert isinstance(merged, DictConfig)
    return plain(merged)


def plain(config: DictConfig) -> dict[str, Any]:
    """A composed configuration with its references resolved, as plain dicts and lists."""
    value = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    assert isinstance(value, dict)
    return {str(key): item for key, item in value.items()}


def _options(
    problems: list[str], build: Callable[[str, Any], Built], group: Mapping[str, Any]
) -> tuple[Built, ...]:
    """Every chosen option of a group; what is wrong with one is collected, not raised."""
    built = (_collect(problems, build, name, option) for name, option in group.items())
    return tuple(option for option in built if option is not None)


def _collect(problems: list[str], build: Callable[..., Built], *arguments: Any) -> Built | None:
    try:
        return build(*arguments)
    except ValueError as error:
        problems.append(str(error))
        return None


def _scalar_problems(chosen: Mapping[str, Any]) -> Iterator[str]:
    if not _whole(chosen["repeats"]):
        yield f"repeats={chosen['repeats']!r}: a whole number of at least 1"
    if chosen["limit"] is not None and not _whole(chosen["limit"]):
        yield f"limit={chosen['limit']!r}: a whole number of at least 1, or null for all items"
    if chosen["rerun"] not in ("failed", "all"):
        yield f"rerun={chosen['rerun']!r}: one of failed, all"
    budget = chosen["failure_budget"]
    if not isinstance(budget, int | float) or isinstance(budget, bool) or not 0 <= budget <= 1:
        yield f"failure_budget={budget!r}: a share between 0 and 1"


def _empty_choices(chosen: Mapping[str, Any]) -> Iterator[str]:
    """A sweep may go without scorers, not without the rest."""
    for group in ("model", "prompt", "condition"):
        if not chosen.get(f"{group}s"):
            offered = sorted(path.stem for path in (ROOT / "conf" / group).glob("*.yaml"))
            yield f"{group}=[]: one or more of {', '.join(offered)}"


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


# --- what each option becomes ------------------------------------------------------------------------------------


def model_spec(name: str, option: Mapping[str, Any]) -> ModelSpec:
    """One `conf/model/` option: checkpoints fingerprinted, adapter versions read, capabilities checked."""
    where = f"model={name}"
    adapter = option.get("adapter")
    if not isinstance(adapter, Mapping) or "_target_" not in adapter:
        raise ValueError(
            f"{where}: adapter needs _target_ (a class in models/) and its arguments, not {adapter!r}"
        )
    identity, problems = _fingerprinted(name, adapter, where)
    versions = _collect(problems, _versions, adapter, where)
    capabilities = _collect(
        problems, build, Capabilities, option.get("capabilities"), f"{where}: capabilities"
    )
    workers = _collect(problems, build, WorkerOptions, option.get("workers") or {}, f"{where}: workers")
    problems += arguments(adapter, where) if versions is not None else []
    problems += environment(workers, where) if workers is not None else []
    worded = _collect(problems, wording, option.get("wording", {}), where)
    if problems or versions is None or capabilities is None or worded is None or workers is None:
        raise ValueError("\n".join(problems))
    if capabilities.system_prompt != "native":
        identity["system_prompt"] = capabilities.system_prompt
    return ModelSpec(
        name=name,
        adapter=adapter,
        checkpoint=ids.digest(sorted(_fingerprints(identity))),
        versions=versions,
        identity=identity,
        capabilities=capabilities,
        wording=worded,
        workers=workers,
    )


def wording(option: Mapping[str, Any], where: str) -> Wording:
    """How a model is addressed: `default_system`, and `transcribe` with `system` and `user`."""
    values = dict(option)
    if values.get("transcribe") is not None:
        values["transcribe"] = build(Instruction, values["transcribe"], f"{where}: wording.transcribe")
    return build(Wording, values, f"{where}: wording")


def arms(option: Mapping[str, Any], offered: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """What else is varied: `{"cue": ("none", "oracle")}`; a single value may stand without brackets.

    An arm that stands at its default alone is left out: it varies nothing, and the chosen tasks need not have it.

    Args:
        option: arm -> value or values.
        offered: the benchmark's tasks, chosen or not.
    """
    lists = {name: value if isinstance(value, list) else [value] for name, value in option.items()}
    values = {name: tuple(map(str, dict.fromkeys(given))) for name, given in lists.items()}
    defaults = {
        (name, known[0])
        for task in offered.values()
        for name, known in getattr(get_class(task["_target_"]), "arms", {}).items()
    }
    return {
        name: given
        for name, given in values.items()
        if not (len(given) == 1 and (name, given[0]) in defaults)
    }


def condition(name: str, option: Mapping[str, Any]) -> Condition:
    """One `conf/condition/` option."""
    chain, where = tuple(option["chain"]), f"condition={name}"
    chosen = build(
        Condition, {**option, "name": name, "chain": chain, "versions": _versions(chain, where)}, where
    )
    build_chain(chosen)
    return replace(chosen, versions={**chosen.versions, **_contents(chain)})


def _contents(chain: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Digests of the folders that a chain's steps take sounds from."""
    named = [(n, key, step[key]) for n, step in enumerate(chain) for key in ids.PATHS if key in step]
    return {f"{n}.{key}": folder_digest(path) for n, key, path in named}


def prompt(name: str, option: Mapping[str, Any]) -> Prompt:
    """One `conf/prompt/` option."""
    return build(Prompt, {"name": name, **option}, f"prompt={name}")


def by_judge(scorers: Mapping[str, Any], judges: Mapping[str, Any]) -> dict[str, Any]:
    """The scorers, those that a judge works for once for each judge that can: the first under the plain names.

    Raises:
        ValueError: a scorer needs a judge and none is chosen.
    """
    options: dict[str, Any] = {}
    for name, option in scorers.items():
        if "by_judge" not in option:
            options[name] = option
            continue
        able = [j for j in judges if option["by_judge"] == "any" or judges[j].get("hears")]
        if not able:
            offered = sorted(path.stem for path in (ROOT / "conf" / "judge").glob("*.yaml"))
            hears = " that hears" if option["by_judge"] == "hearing" else ""
            raise ValueError(f"scorer={name}: needs a judge{hears}: 'judge=[...]' of {', '.join(offered)}")
        for judge in able:
            suffix = "" if judge == able[0] else f".{judge}"
            options[f"{name}.{judge}"] = _for_judge(option, judges[judge], suffix)
    return options


def _for_judge(option: Mapping[str, Any], judge: Mapping[str, Any], suffix: str) -> dict[str, Any]:
    named = {f"{metric}{suffix}": spec for metric, spec in option["metrics"].items()}
    return {**option, "scorer": {**option["scorer"], "judge": judge, "suffix": suffix}, "metrics": named}


NOT_OF_A_SCORE = ("_target_", "weights", "server", "max_calls", "suffix", "path", "made_by")
"""Settings of a scorer that change no score of its: where it runs, how often it is asked, what it is called."""


def _deciding(settings: Any) -> Any:
    """A scorer's settings without those that change no score."""
    if not isinstance(settings, Mapping):
        return settings
    return {key: _deciding(value) for key, value in settings.items() if key not in NOT_OF_A_SCORE}


def scorer_spec(name: str, option: Mapping[str, Any]) -> ScorerSpec:
    """One `conf/scorer/` option; its weights are fingerprinted where they are there."""
    where = f"scorer={name}"
    scorer = dict(option["scorer"])
    settings = _deciding(scorer)
    version = _versions(scorer, where)[scorer["_target_"]]
    if problems := arguments(scorer, where):
        raise ValueError("\n".join(problems))
    return ScorerSpec(
        name=name,
        scorer=scorer,
        version=f"{version}+{ids.digest(settings)[:8]}" if settings else version,
        weights=get_class(scorer["_target_"]).weights_fingerprint(scorer),  # type: ignore[attr-defined]
        metrics=tuple(
            build(MetricSpec, {"name": metric, **spec}, where) for metric, spec in option["metrics"].items()
        ),
        needs=option["needs"],
        tasks=tuple(option.get("tasks", ())),
        workers=build(WorkerOptions, option.get("workers", {}), f"{where}: workers"),
    )


def tasks(chosen: Mapping[str, Any]) -> tuple[Task, ...]:
    """The benchmark's chosen tasks; building one reads its data folder's index, never its audio."""
    offered = chosen["benchmark"]["tasks"]
    unknown = [name for name in chosen["task"] if name not in offered]
    if unknown or not chosen["task"]:
        raise ValueError(f"task={unknown or '[]'}: one or more of {', '.join(offered)}")
    return tuple(_task(offered[name]) for name in dict.fromkeys(chosen["task"]))


def _task(option: Mapping[str, Any]) -> Any:
    try:
        return instantiate(option)
    except InstantiationException as error:
        # Hydra hides what a task says of its arguments inside an exception of its own.
        if isinstance(error.__cause__, ValueError):
            raise error.__cause__ from error
        raise


# --- versions and fingerprints -----------------------------------------------------------------------------------


def _versions(tree: Any, where: str) -> dict[str, str]:
    return {target: _version(target, where) for target in _targets(tree)}


def _version(target: str, where: str) -> str:
    try:
        return str(get_class(target).version)  # type: ignore[attr-defined]
    except ImportError as error:
        raise ValueError(f"{where}: _target_ {target} cannot be imported: {error}") from error


def _targets(tree: Any) -> Iterator[str]:
    if isinstance(tree, Mapping):
        if "_target_" in tree:
            yield tree["_target_"]
        for value in tree.values():
            yield from _targets(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _targets(value)


def _fingerprinted(name: str, tree: Any, where: str) -> tuple[Any, list[str]]:
    """The tree with each `checkpoint` replaced by its fingerprint, and what is wrong with them."""
    if isinstance(tree, list | tuple):
        pairs = [_fingerprinted(name, value, where) for value in tree]
        return [value for value, _ in pairs], [problem for _, found in pairs for problem in found]
    if not isinstance(tree, Mapping):
        return tree, []
    result: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in tree.items():
        if key in WITHOUT_EFFECT:
            continue
        if key == "checkpoint":
            result[key], found = _checkpoint(name, value, where)
        else:
            result[key], found = _fingerprinted(name, value, where)
        problems += found
    return result, problems


def _checkpoint(name: str, checkpoint: Mapping[str, Any], where: str) -> tuple[str, list[str]]:
    if not isinstance(checkpoint, Mapping) or not checkpoint.keys() & {"path", "repo", "served_model"}:
        return "", [f"{where}: checkpoint={checkpoint!r}: {{path: ...}}, or {{repo: ..., revision: ...}}"]
    if "path" in checkpoint:
        try:
            path = local(checkpoint)
        except ValueError as error:
            return "", [f"{where}: {error}"]
        return folder_digest(path) if path.is_dir() else file_digest(path), []
    if "served_model" in checkpoint:
        served, label = checkpoint["served_model"], checkpoint.get("label")
        if not served or not label:
            return "", [
                f"{where}: checkpoint needs served_model, and a label that names the weights behind it"
            ]
        return f"{served}#{label}", []
    if not checkpoint.get("revision"):
        return "", [
            f"{where}: {checkpoint['repo']} has no revision, and replies of changing weights cannot be compared; "
            f"pin it: python scripts/pin.py {name}"
        ]
    return f"{checkpoint['repo']}@{checkpoint['revision']}", []


def _fingerprints(identity: Any) -> Iterator[str]:
    if isinstance(identity, Mapping):
        for key, value in identity.items():
            if key == "checkpoint":
                yield value
            else:
                yield from _fingerprints(value)
    elif isinstance(identity, list):
        for value in identity:
            yield from _fingerprints(value)
