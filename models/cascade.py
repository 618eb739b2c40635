"""The cascade: a recogniser, a chat language model and a synthesiser, each named in the configuration.

With Whisper-large-v3 and Llama-3.1-8B it is the published baseline of spoken benchmarks (VoxEval and others); with tiny
parts it runs on a CPU. It hears words only: whatever the voice carries beside them is lost at the first stage.

Invariant: a request's reply depends on the request alone, not on its batch; a part's failure is that request's failure.
Asked for a transcript, it answers with its recogniser's. An empty transcript is no failure: as in the published
cascades the language model is asked with an empty user turn, and the `transcript` event shows what was (not) heard.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from farm.types import AudioSegment, Event, Failure, Reply, Request, TextSegment, Turn, Waveform
from models.language import Chat, Completion, LanguageModel
from speech.types import Recogniser, Synthesiser

Given = TypeVar("Given")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """A request's turn as the recogniser heard it."""

    transcripts: tuple[str, ...]
    """Of its audio segments, in order."""
    user: str
    """What the language model is asked."""


class Cascade:
    """Recogniser, language model, synthesiser; answers one turn a request.

    Args:
        recogniser: `_target_` and arguments of a `speech.types.Recogniser`.
        language_model: `_target_` and arguments of a `models.language.LanguageModel`.
        synthesiser: `_target_` and arguments of a `speech.types.Synthesiser`; None answers in text only.
        device: torch's name for all parts; `auto` is the GPU that the process may see, else the CPU.
    """

    version = "1"

    def __init__(
        self,
        *,
        recogniser: Mapping[str, Any],
        language_model: Mapping[str, Any],
        synthesiser: Mapping[str, Any] | None,
        device: str = "auto",
    ) -> None:
        place = _device(device)
        self._recogniser: Recogniser = _part(recogniser, place)
        self._language_model: LanguageModel = _part(language_model, place)
        self._synthesiser: Synthesiser | None = _part(synthesiser, place) if synthesiser else None

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers a batch stage by stage; see `farm.types.SpeechModel`."""
        started = time.perf_counter()
        heard = self._hear(requests)
        heard_s = time.perf_counter() - started
        # Who asks for a transcript asks the recogniser: a language model would answer it, or make one up.
        talked = [row for row, request in enumerate(requests) if not _transcribes(request)]
        replies = {
            row: _transcript(heard[row], heard_s) for row in range(len(requests)) if row not in set(talked)
        }
        answered = self._talk(
            [requests[row] for row in talked], [heard[row] for row in talked], started, heard_s
        )
        replies.update(zip(talked, answered, strict=True))
        return [replies[row] for row in range(len(requests))]

    def _talk(
        self, requests: Sequence[Request], heard: Sequence[_Heard | Failure], started: float, heard_s: float
    ) -> list[Reply]:
        chats: list[Chat | Failure] = [
            said if isinstance(said, Failure) else Chat(system=r.system or "", user=said.user, seed=r.seed)
            for r, said in zip(requests, heard, strict=True)
        ]
        completions = _through(chats, self._language_model.complete)
        said_s = time.perf_counter() - started
        texts = [c if isinstance(c, Failure) else c.text for c in completions]
        speeches = _through(texts, self._synthesiser.speak) if self._synthesiser else [None] * len(texts)
        spoken_s = time.perf_counter() - started
        return [
            _reply(*row, heard_s=heard_s, said_s=said_s, spoken_s=spoken_s)
            for row in zip(heard, completions, speeches, strict=True)
        ]

    def _hear(self, requests: Sequence[Request]) -> list[_Heard | Failure]:
        """Every audio segment of the batch goes to the recogniser at once."""
        clips = [_waveforms(request) for request in requests]
        found = iter(self._recogniser.transcribe([clip for request in clips for clip in request]))
        results: list[_Heard | Failure] = []
        for request, waveforms in zip(requests, clips, strict=True):
            transcripts = [next(found) for _ in waveforms]
            failed = [t for t in transcripts if isinstance(t, Failure)]
            texts = tuple(t.text for t in transcripts if not isinstance(t, Failure))
            if len(request.turns) != 1:
                failed = [
                    Failure(kind="input_error", message=f"{len(request.turns)} turns; the cascade answers 1")
                ]
            results.append(
                failed[0] if failed else _Heard(transcripts=texts, user=_user(request.turns[0], texts))
            )
        return results


def _device(name: str) -> str:
    if name != "auto":
        return name
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _part(config: Mapping[str, Any], device: str) -> Any:
    from hydra.utils import instantiate
    from transformers.utils import logging

    # Its bars for loading weights would break the sweep's own display.
    logging.disable_progress_bar()
    return instantiate(dict(config), device=device, _convert_="all")


def _through(
    values: Sequence[Given | Failure], stage: Callable[[Sequence[Given]], list[Made | Failure]]
) -> list[Made | Failure]:
    """The stage's result of every value; failures of earlier stages pass by it."""
    good = [value for value in values if not isinstance(value, Failure)]
    made = iter(stage(good) if good else [])
    return [value if isinstance(value, Failure) else next(made) for value in values]


def _transcribes(request: Request) -> bool:
    return any(isinstance(s, TextSegment) and s.role == "transcribe" for turn in request.turns for s in turn)


def _transcript(heard: _Heard | Failure, heard_s: float) -> Reply:
    """What the recogniser heard, written and not spoken."""
    if isinstance(heard, Failure):
        return Reply(failure=heard)
    said = "\n".join(heard.transcripts)
    return Reply(text=said, events=(_event(heard_s, "recogniser", "transcript", said),))


def _waveforms(request: Request) -> list[Waveform]:
    """The audio of a request that carries words; what is marked as silence has none, and Whisper would invent some."""
    segments = [
        s for turn in request.turns for s in turn if isinstance(s, AudioSegment) and s.role != "silence"
    ]
    waveforms = [segment.waveform for segment in segments if segment.waveform is not None]
    assert len(waveforms) == len(segments), "a request reaches a model only after its audio was heard"
    return waveforms


def _user(turn: Turn, transcripts: Sequence[str]) -> str:
    """The turn as text: its segments in order, each transcript where its audio was, one a line."""
    heard = iter(transcripts)
    lines = []
    for segment in turn:
        if not isinstance(segment, AudioSegment):
            lines.append(segment.text)
        elif segment.role != "silence":
            lines.append(next(heard))
    return "\n".join(line for line in lines if line)


def _reply(
    heard: _Heard | Failure,
    completion: Completion | Failure,
    speech: Waveform | Failure | None,
    *,
    heard_s: float,
    said_s: float,
    spoken_s: float,
) -> Reply:
    if isinstance(heard, Failure):
        return Reply(failure=heard)
    if isinstance(completion, Failure):
        return Reply(failure=completion)
    # A text that nobody can speak (empty, emoji only) is the model's answer all the same; a broken synthesiser is not.
    if isinstance(speech, Failure) and speech.kind != "input_error":
        return Reply(failure=speech)
    return Reply(
        text=completion.text,
        speech=speech if isinstance(speech, Waveform) else None,
        events=(
            *(_event(heard_s, "recogniser", "transcript", text) for text in heard.transcripts),
            _event(heard_s + completion.first_token_s, "language_model", "first_token"),
            _event(said_s, "language_model", "text_end"),
            _onset(speech, spoken_s),
        ),
        tokens_in=completion.tokens_in,
        tokens_out=completion.tokens_out,
        truncated=completion.truncated,
    )


def _onset(speech: Waveform | Failure | None, spoken_s: float) -> Event:
    """Speech begins when the whole batch has been synthesised: nothing streams here."""
    if isinstance(speech, Waveform):
        return _event(spoken_s, "synthesiser", "speech_onset")
    reason = speech.message if speech else "the model answers in text only"
    return _event(None, "synthesiser", "speech_onset", reason)


def _event(t_s: float | None, actor: str, kind: str, data: str = "") -> Event:
    return Event(t_s=t_s, clock="wall", actor=actor, kind=kind, data=data)
