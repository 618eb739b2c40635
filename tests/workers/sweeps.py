"""Small sweeps over a trivial task with real audio files, run to the end on a real Ray cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

import farm.plan
from farm.plan import Plan, Sweep
from farm.store import Store
from farm.types import (
    AudioSegment,
    Capabilities,
    Condition,
    Item,
    MetricSpec,
    ModelSpec,
    Prompt,
    Request,
    ScorerSpec,
    Stimulus,
    TextSegment,
    WorkerOptions,
)
from workers import engine
from workers.status import Summary

RATE_HZ = 8000
CLEAN = Condition(name="clean", chain=())


def wav(path: Path, seconds: float = 0.25) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    t = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    soundfile.write(path, (0.3 * np.sin(2 * np.pi * 220 * t)).astype(np.float32), RATE_HZ)
    return path


@dataclass
class Sayings:
    """A task: one file, or one of their own, per key."""

    folder: Path
    keys: Sequence[str]
    files: Mapping[str, Path] = field(default_factory=dict)
    name: str = "test.sayings"
    benchmark: str = "test"

    def items(self) -> Iterable[Item]:
        common = wav(self.folder / "tone.wav")
        for key in self.keys:
            path = self.files.get(key, common)
            sha = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "0" * 64
            audio = AudioSegment(role="question", path=str(path), sha256=sha, seconds=0.25)
            turn = (audio, TextSegment(role="question", text=key))
            yield Item(
                key=key,
                benchmark=self.benchmark,
                task=self.name,
                unit=key,
                pair_id=key,
                stimulus=Stimulus(turns=(turn,)),
                gold={"answer": key},
            )

    def template(self, prompt: Prompt) -> str:
        return ""

    def request(self, item: Item, prompt: Prompt) -> Request:
        return Request(system="", turns=item.stimulus.turns)


def model(
    notes: Path,
    name: str = "parrot",
    *,
    limit: int = 8,
    workers: Mapping[str, Any] | None = None,
    **adapter: Any,
) -> ModelSpec:
    notes.mkdir(parents=True, exist_ok=True)
    target = {
        "_target_": "tests.workers.standins.Parrot",
        "_recursive_": False,
        "notes": str(notes),
        **adapter,
    }
    return ModelSpec(
        name=name,
        adapter=target,
        checkpoint="0" * 64,
        versions={},
        identity={"name": name},
        capabilities=Capabilities(
            text_out=True, speech_out=adapter.get("speech", True), max_batch=limit, max_audio_s=5.0
        ),
        workers=WorkerOptions(**{"num_cpus": 0.5, "max_batch": limit, "timeout_s": 60.0, **(workers or {})}),
    )


def scorer(
    notes: Path, name: str = "loudness", *, workers: Mapping[str, Any] | None = None, **arguments: Any
) -> ScorerSpec:
    notes.mkdir(parents=True, exist_ok=True)
    return ScorerSpec(
        name=name,
        scorer={"_target_": "tests.workers.standins.Loudness", "notes": str(notes), **arguments},
        version="1",
        weights="",
        metrics=tuple(
            MetricSpec(name=n, aggregate="mean", better="higher") for n in ("test/level", "test/length")
        ),
        needs="speech",
        workers=WorkerOptions(**{"num_cpus": 0.25, **(workers or {})}),
    )


def plan_of(task: Sayings, models: Sequence[ModelSpec], repeats: int = 1) -> Plan:
    prompt = Prompt(name="p1", strength="zero")
    return farm.plan.make(
        Sweep(
            models=tuple(models),
            tasks=(task,),
            prompts=(prompt,),
            conditions=(CLEAN,),
            scorers=(),
            repeats=repeats,
        )
    )


@dataclass(frozen=True)
class Ran:
    """What a sweep came to."""

    summary: Summary
    store: Store
    notes: Path

    def rows(self, *columns: str) -> list[dict[str, Any]]:
        return self.store.replies(columns=columns or None).to_pylist()

    def failures(self) -> dict[str, tuple[str, str]]:
        """Item key -> failure kind and message."""
        rows = self.rows("item_key", "failure_kind", "failure_message")
        return {r["item_key"]: (r["failure_kind"], r["failure_message"]) for r in rows if r["failure_kind"]}

    def kinds(self) -> dict[str, str]:
        return {key: kind for key, (kind, _) in self.failures().items()}

    def scores(self) -> list[dict[str, Any]]:
        return self.store.scores().to_pylist()

    def loads(self, name: str = "loads") -> int:
        return len((self.notes / name).read_text().splitlines())

    def batches(self) -> list[list[str]]:
        """The keys of every batch that was begun."""
        return [line.split()[1:] for line in (self.notes / "batches").read_text().splitlines()]


Run = Callable[..., Ran]


def run(
    folder: Path,
    keys: Sequence[str],
    models: Sequence[ModelSpec],
    scorers: Sequence[ScorerSpec] = (),
    *,
    repeats: int = 1,
    files: Mapping[str, Path] | None = None,
    **options: Any,
) -> Ran:
    store = Store.open(str(folder / "store"))
    task = Sayings(folder / "data", keys, files or {})
    plan = plan_of(task, models, repeats)
    progress = store.progress(count_done=bool(options.get("again")))
    summary = engine.run(plan, models, scorers, store, progress, **options)
    ran = Ran(summary, store, folder / "notes")
    ids = [row["trial_id"] for row in ran.rows("trial_id")]
    assert len(ids) == len(set(ids)), "a trial has two rows"
    return ran
