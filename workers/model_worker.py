"""A model in a worker: hears requests ahead, answers batches, writes reply speech straight to the store.

Invariant: one outcome per trial, always; no audio leaves the worker but as a FLAC file in the store.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import audio
from farm.store import Store, StoreError
from farm.types import Event, Failure, ModelSpec, Outcome, Reply, Request, SpeechModel, TextSegment, Trial
from workers.batches import Done
from workers.sessions import Sessions


@dataclass(frozen=True, slots=True)
class _Heard:
    """A trial whose audio has been decoded and degraded."""

    request: Request
    drawn: Mapping[str, str]


class ModelBody:
    """What `workers.host.Host` hosts for one model."""

    def __init__(self, spec: ModelSpec, store: Store) -> None:
        self.name = spec.name
        self.threads = spec.workers.hear_threads
        self.limit = batch_limit(spec)
        self._spec = spec
        self._store = store
        self._worker = ""
        self._environment = ""
        self._model: SpeechModel

    def load(self, worker: str) -> None:
        """Instantiates the adapter on this worker's device."""
        from hydra.errors import InstantiationException
        from hydra.utils import instantiate

        self._worker = worker
        self._environment = self._store.environment(packages())
        device = "cuda" if self._spec.workers.num_gpus > 0 else "cpu"
        try:
            model = instantiate(dict(self._spec.adapter), device=device, _convert_="all")
        except InstantiationException as error:
            # Hydra hides what the adapter said inside an exception of its own.
            raise error.__cause__ or error from None
        able = self._spec.capabilities
        self._model = Sessions(model, rows=able.max_batch) if able.duplex else model

    def prepare(self, trial: Trial) -> _Heard:
        """Hears a trial's request under its condition, its system prompt put where the model takes it.

        Raises:
            ValueError: audio that cannot be used, or longer than the model takes; more turns than it takes.
        """
        turns = len(trial.request.turns)
        if turns > 1 and not self._spec.capabilities.multi_turn:
            raise ValueError(f"{turns} turns; {self.name} takes one")
        request, drawn = audio.hear(trial.request, trial.condition, trial.condition_seed)
        longest_s = self._spec.capabilities.max_audio_s
        if request.seconds > longest_s:
            raise ValueError(f"{request.seconds:.2f} s of audio; {self.name} takes {longest_s:g} s at most")
        return _Heard(with_system_prompt(request, self._spec.capabilities.system_prompt), drawn)

    def work(self, heard: Sequence[_Heard]) -> list[Reply | Failure]:
        """The model's replies to a batch."""
        replies = self._model.answer([h.request for h in heard])
        return [_checked(reply) for reply in replies]

    def finish(self, trial: Trial, heard: _Heard | Failure, done: Done[Reply]) -> Outcome:
        """Keeps a reply's speech in the store and says what became of the trial."""
        value = done.value
        reply = Reply(failure=value) if isinstance(value, Failure) else value
        outcome = Outcome(
            trial_id=trial.trial_id,
            attempt=trial.attempt,
            reply=reply,
            worker=self._worker,
            environment=self._environment,
        )
        if not isinstance(heard, Failure):
            outcome = replace(
                outcome,
                heard_seconds=heard.request.seconds,
                condition_drawn=dict(heard.drawn),
                seconds=done.seconds,
                batch_size=done.batch_size,
                started_at=done.started_at,
            )
        return self._with_speech(trial, outcome)

    def _with_speech(self, trial: Trial, outcome: Outcome) -> Outcome:
        speech = outcome.reply.speech
        if speech is None:
            return outcome
        uri = self._store.speech_uri(trial.trial_id, trial.attempt, 0)
        try:
            self._store.put(uri, audio.encode_flac(speech))
            outcome = self._with_session(trial, outcome)
        except ValueError as error:
            failure = Failure(kind="model_error", message=f"reply speech: {error}")
        except StoreError as error:
            failure = Failure(kind="store_error", message=str(error))
        else:
            silent = replace(outcome.reply, speech=None, user=None)
            return replace(outcome, reply=silent, speech_uri=uri, speech_seconds=speech.seconds)
        return replace(outcome, reply=Reply(failure=failure))

    def _with_session(self, trial: Trial, outcome: Outcome) -> Outcome:
        """Keeps both sides of a session in one stereo file, user left, assistant right."""
        reply = outcome.reply
        if reply.user is None or reply.speech is None:
            return outcome
        uri = self._store.session_uri(trial.trial_id, trial.attempt)
        self._store.put(uri, audio.encode_stereo_flac(reply.user, reply.speech))
        recording = Event(t_s=0.0, clock="audio", actor="worker", kind="recording", data=uri)
        return replace(outcome, reply=replace(reply, events=(*reply.events, recording)))


def _checked(reply: Any) -> Reply | Failure:
    if not isinstance(reply, Reply):
        return Failure(
            kind="model_error", message=f"the adapter answered a {type(reply).__name__}, not a Reply"
        )
    if reply.failure is None and reply.text is None and reply.speech is None:
        return Failure(kind="model_error", message="a reply with neither text nor speech nor a failure")
    return reply


def with_system_prompt(request: Request, takes: str) -> Request:
    """The request with its system prompt where the model reads it.

    Args:
        request: As the benchmark asked it.
        takes: `native` keeps the system turn; `merged` puts its text before the first user turn's segments; `none`
            drops it.
    """
    if takes == "native":
        return request
    if takes == "none" or not request.system:
        return replace(request, system=None)
    first, *others = request.turns
    merged = (TextSegment(role="instruction", text=f"{request.system}\n"), *first)
    return replace(request, system=None, turns=(merged, *others))


def batch_limit(spec: ModelSpec) -> int:
    """Trials at once at most: what the adapter can do, and what the user allows.

    Of duplex sessions more may be handed over than the adapter has rows: they enter as rows become free.
    """
    if spec.capabilities.duplex:
        return max(1, spec.workers.max_batch)
    return max(1, min(spec.capabilities.max_batch, spec.workers.max_batch))


def packages() -> dict[str, str]:
    """Every package installed in this process's environment, with its version."""
    found = ((d.metadata["Name"], d.version) for d in importlib.metadata.distributions())
    return {name: version for name, version in found if name}
