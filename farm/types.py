"""The vocabulary as types: what travels between the folders, and nothing else.

Invariant: every value here is frozen and can be pickled without torch, Ray or MLflow. One word for one thing; the
table of words is in README.md, "Words".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NewType, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

FailureKind = Literal[
    "input_error", "model_error", "out_of_memory", "worker_crash", "timeout", "load_error", "store_error"
]
"""Why a trial has no reply. A failed trial is retried by the next run and stays inside every denominator."""

ScoreStatus = Literal[
    "ok", "unparsed", "failed", "judge_error", "unavailable", "not_applicable", "needs_review", "ambiguous"
]
"""What became of one score: only `ok` has a value, every other one has a reason."""

Aggregate = Literal["mean", "rate", "ratio", "bleu"]
"""How scores become a metric: mean over scored trials, rate over all trials, sum of numerators / denominators, corpus
BLEU of summed counts (a score's label: 4 counts of matches, 4 of n-grams, the lengths of reply and reference)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Waveform:
    """Mono audio in memory."""

    samples: npt.NDArray[np.float32]
    """Shape (frames,), full scale = 1.0."""
    sample_rate_hz: int

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.sample_rate_hz


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioSegment:
    """A piece of audio inside a turn: a file before `hear`, a waveform after it."""

    role: str
    """What the audio is to the model: `question`, `example_question`, `example_answer`, `silence`."""
    path: str
    """Empty for role `silence` that is made, not read: `seconds` of it."""
    sha256: str
    """Of the file's bytes: this, not the path, is part of a trial's identity."""
    seconds: float
    """True length (decoded, not the header's); 0.0 where the file cannot be decoded."""
    waveform: Waveform | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSegment:
    """A piece of text inside a turn."""

    role: str
    """`instruction`, `question`, `options`, `cue`; `transcribe` is an instruction to write down what was said."""
    text: str


Segment = AudioSegment | TextSegment
Turn = tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stimulus:
    """What the model is given of an item, before a prompt is added."""

    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question of a task."""

    key: str
    """Unique within its benchmark."""
    benchmark: str
    task: str
    """`echomind.conversation`."""
    unit: str
    """What is independent in the statistics: the script, not the recording."""
    pair_id: str
    """Items that differ in one factor only share it."""
    stimulus: Stimulus
    gold: Mapping[str, Any] = field(default_factory=dict)
    """References, labels, correct option. Never part of a trial's identity."""
    factors: Mapping[str, str] = field(default_factory=dict)
    """Fixed properties: voice_style, voice_source, attribute, topic ..."""

    @property
    def seconds(self) -> float:
        """Seconds of audio in the stimulus."""
        return sum(s.seconds for turn in self.stimulus.turns for s in turn if isinstance(s, AudioSegment))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """An instruction strength; a benchmark turns it into text for one item."""

    name: str
    """`p1`."""
    strength: Literal["zero", "basic", "enhanced", "own"]
    """`own`: a task that is asked in one way of its own, whatever prompts a sweep chooses."""
    system: str | None = None
    """A template of the user's own that replaces the benchmark's text; `{topic}` and other factors are filled in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What we do to the input audio: a chain of transforms, empty for clean speech."""

    name: str
    chain: tuple[Mapping[str, Any], ...]
    """Each step: `_target_` of a class in audio.conditions and its parameters."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """`_target_` -> its version, for the trial's identity."""
    acts_on: Literal["question", "all"] = "question"
    """`all`: on the speech of a prompt's examples too, each with random numbers of its own; never on silence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a model can do, from its YAML: the driver reads it without importing the adapter's libraries."""

    text_out: bool
    speech_out: bool
    sample_rate_hz: int | None = None
    """Rate of the reply's speech."""
    system_prompt: Literal["native", "merged", "none"] = "native"
    max_batch: int = 1
    max_audio_s: float = 30.0
    """Longer input is an `input_error`, never cut silently."""
    multi_turn: bool = False
    duplex: bool = False
    """A `DuplexModel`: it runs full-duplex sessions, `max_batch` at once, and answers no other task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """A system prompt and a text beside the audio, each of which may be missing."""

    system: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """Words that a benchmark leaves to the model, from its YAML; a request's text has them, so they are in the ids."""

    default_system: str | None = None
    """The system prompt that it was trained with: stands where a benchmark would say "You are a helpful assistant.".
    Empty: its adapter says it by itself."""
    transcribe: Instruction | None = None
    """How it is asked for a transcript, where it has a way of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a pool of Ray actors runs one model or scorer. Changes no reply, so it is in no id."""

    count: int = 1
    num_cpus: float = 1.0
    num_gpus: float = 0.0
    max_batch: int = 8
    """Items a batch at most; out-of-memory halves it for the rest of the sweep."""
    max_batch_audio_s: float = 240.0
    """Padded seconds of audio a batch at most."""
    timeout_s: float = 300.0
    """A batch that takes longer has hung: its worker is killed."""
    load_timeout_s: float = 900.0
    hear_threads: int = 2
    """CPU threads that decode and degrade the next batches while the model works."""
    env_vars: Mapping[str, str] = field(default_factory=dict)
    py_executable: str | None = None
    """Another environment's interpreter, for families whose code needs one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """One model of a sweep: which adapter, which checkpoint, how it generates."""

    name: str
    """The option's name: `cascade_cpu`."""
    adapter: Mapping[str, Any]
    """`_target_` and its arguments, as composed; instantiated in the worker."""
    checkpoint: str
    """Fingerprint of all weights: 64 hex digits."""
    versions: Mapping[str, str]
    """`_target_` -> version of every class in the adapter tree."""
    identity: Mapping[str, Any]
    """The adapter tree with paths replaced by fingerprints: what of the model enters a trial id."""
    capabilities: Capabilities
    wording: Wording = field(default_factory=Wording)
    workers: WorkerOptions = field(default_factory=WorkerOptions)

    @property
    def label(self) -> str:
        """`cascade_cpu@9f3c1ab`."""
        return f"{self.name}@{self.checkpoint[:7]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """One metric that a scorer's scores become."""

    name: str
    """`quality/nisqa_mos`: MLflow shows metrics with one prefix in one section."""
    aggregate: Aggregate
    better: Literal["higher", "lower", "neither"]
    headline: bool = False
    """Shown in the leaderboard, as the first metric of each scorer is."""
    margin: float | None = None
    """How far apart two checkpoints may be and still be alike, in the metric's unit; None is never tested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerSpec:
    """One scorer of a sweep."""

    name: str
    scorer: Mapping[str, Any]
    """`_target_` and its arguments."""
    version: str
    """Of the scorer's code."""
    weights: str
    """Fingerprint of its weights; empty where it has none or they are missing."""
    metrics: tuple[MetricSpec, ...]
    needs: Literal["speech", "text"]
    """The part of a reply that it scores; a model that never gives it makes the score `not_applicable`."""
    tasks: tuple[str, ...] = ()
    """Whose replies it scores (`echomind.conversation`); empty is every task's. Other cells do not know of it."""
    workers: WorkerOptions = field(default_factory=WorkerOptions)

    def scores(self, task: str) -> bool:
        """Whether replies of a task are its business."""
        return not self.tasks or task in self.tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """How a turn's audio becomes one recording, as speech-only models are prompted with examples."""

    keep_last_s: float | None = None
    """Of a longer recording only the last so many seconds are heard; None keeps all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a model is handed: a system prompt and turns of segments."""

    system: str | None
    """Empty is a system turn without text; None is no system turn (the model takes none)."""
    turns: tuple[Turn, ...]
    trial_id: str = ""
    seed: int = 0
    """Sampling seed of this request alone: its neighbours in a batch do not change its reply."""
    joined: Joining | None = None
    """The worker joins each turn's audio into one recording, after the condition; None leaves it in segments."""

    @property
    def seconds(self) -> float:
        """Seconds of audio in it (heard where it has been heard)."""
        return sum(self._seconds(turn) for turn in self.turns)

    def _seconds(self, turn: Turn) -> float:
        audio = [s for s in turn if isinstance(s, AudioSegment)]
        seconds = sum(s.waveform.seconds if s.waveform else s.seconds for s in audio)
        longest_s = self.joined.keep_last_s if self.joined else None
        return seconds if longest_s is None else min(seconds, longest_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened during a reply."""

    t_s: float | None
    """None where it is absent; `data` then carries the reason."""
    clock: str
    """`wall` (seconds since the batch began) or `audio` (seconds of audio)."""
    actor: str
    kind: str
    """`first_token`, `speech_onset`, `transcript`, `tool_call` ..."""
    data: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why there is no reply: a value, never an exception that travels."""

    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered in one turn, or why it did not."""

    text: str | None = None
    speech: Waveform | None = None
    events: tuple[Event, ...] = ()
    tokens_in: int | None = None
    tokens_out: int | None = None
    truncated: bool = False
    """The reply was cut at the token limit."""
    failure: Failure | None = None
    user: Waveform | None = None
    """Of a session: the user's side, in sync with `speech` from the first sample on, at the same rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a scorer said of one reply, under one name."""

    name: str
    """A metric's name: `quality/nisqa_mos`."""
    status: ScoreStatus = "ok"
    value: float | None = None
    label: str | None = None
    numerator: float | None = None
    denominator: float | None = None
    reason: str = ""
    rater: str = ""
    """Which program, model or person."""
    rater_kind: Literal["program", "model", "human"] = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """All trials that share checkpoint, task, prompt, condition and arm: one MLflow run."""

    cell_id: str
    model: ModelSpec
    benchmark: str
    task: str
    prompt: Prompt
    template: str
    """The prompt's text as the task puts it, before an item fills it in."""
    condition: Condition
    arm: Mapping[str, str] = field(default_factory=dict)

    @property
    def run_name(self) -> str:
        """`cascade_cpu@9f3c1ab · p2 · white_10db`."""
        return " · ".join(
            [self.model.label, self.prompt.name, self.condition.name, *map("=".join, self.arm.items())]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One session of one cell's model: everything a model worker needs for it."""

    trial_id: str
    cell_id: str
    item_key: str
    request: Request
    condition: Condition
    condition_seed: int
    """H(item key, condition, repeat): the same noise for every model, so that contrasts are paired."""
    repeat: int
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a model worker reports of a trial: the reply without its speech, which is on disk already."""

    trial_id: str
    attempt: int
    reply: Reply
    """`reply.speech` is None; the speech is at `speech_uri`."""
    speech_uri: str | None = None
    """Relative to the store."""
    speech_seconds: float | None = None
    heard_seconds: float | None = None
    condition_drawn: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None
    """The trial's share of its batch's wall time."""
    batch_size: int | None = None
    worker: str = ""
    started_at: str = ""
    """ISO 8601, UTC."""
    environment: str = ""
    """Digest of the installed packages; the list is in the store's environments/."""


class SpeechModel(Protocol):
    """An adapter that has loaded one checkpoint. Full-duplex sessions are `DuplexModel`'s."""

    version: str
    """Bumped with every change that can change a reply: part of the trial id."""

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers a batch: one reply per request, in order; a request's failure is a reply with `failure` set.

        Raises:
            MemoryError: (or torch's OutOfMemoryError) the batch is too large; the worker halves it.
        """
        ...


Row = NewType("Row", int)
"""A place in a duplex model's batch: one session holds it from `open` to `close`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a duplex model is told before a session's first frame."""

    system: str | None
    seed: int
    """Sampling seed of this session alone."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frame:
    """What the user's microphone gives in one frame."""

    samples: npt.NDArray[np.float32]
    """Shape (frame_s * sample_rate_hz,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """What the assistant gives in the same frame."""

    samples: npt.NDArray[np.float32]
    """As many as the frame had."""
    text: str = ""
    """A piece of what is said from this frame on; all pieces joined are the whole text."""
    events: tuple[Event, ...] = ()
    failure: Failure | None = None
    """Ends this session; the other rows go on."""


class DuplexModel(Protocol):
    """An adapter that hears and speaks at once, frame by frame, on a virtual clock: it never waits for real time."""

    version: str
    """As a `SpeechModel`'s."""
    frame_s: float
    sample_rate_hz: int
    """Of what it hears and of what it says."""

    def open(self, session: Session) -> Row:
        """Takes a row for a session; allowed at any frame of the other rows.

        Raises:
            ValueError: this session cannot be run.
        """
        ...

    def step(self, frames: Mapping[Row, Frame]) -> Mapping[Row, Step]:
        """One frame of every open row at once; what a row gives depends on its own session and frames alone."""
        ...

    def close(self, row: Row) -> None:
        """Gives the row back."""
        ...


class Scorer(Protocol):
    """Judges replies. Weights or gold missing is a score with status `unavailable`, not an exception."""

    version: str

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """Scores a batch: for each reply, in order, its scores (one for each of the scorer's metrics)."""
        ...


class Task(Protocol):
    """One task of a benchmark: its items, and how a prompt is put to one of them."""

    name: str
    """`echomind.conversation`."""
    benchmark: str

    def items(self) -> Iterable[Item]:
        """Every item, in a stable order.

        Raises:
            ValueError: the data folder is wrong; the message lists all that is missing.
        """
        ...

    def template(self, prompt: Prompt) -> str:
        """The prompt's text before an item fills it in: two templates are two cells, even where they read alike."""
        ...

    def request(self, item: Item, prompt: Prompt) -> Request:
        """The item's stimulus with the prompt's full text; audio not yet heard."""
        ...


@runtime_checkable
class VariedTask(Protocol):
    """A task that is also asked in other ways than its prompts say; what it lacks of this, every other task lacks."""

    prompts: tuple[Prompt, ...]
    """Its own, which stand for all that a sweep chooses; empty: those of the sweep."""
    arms: Mapping[str, tuple[str, ...]]
    """What else may be varied -> its values, the default first: `{"cue": ("none", "oracle")}`."""

    def varied(self, arm: Mapping[str, str], wording: Wording) -> Task:
        """The task under one arm (defaults left out), worded for one model."""
        ...
