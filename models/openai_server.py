"""Speech in, text (and speech where it is offered) out, by a chat server that speaks OpenAI's protocol.

For vLLM, vllm-omni, SGLang (since it takes `input_audio`) and OpenAI's own audio models: audio goes there inside the
request. Samples go as 16-bit WAV at their own rate, which is what all of them take: a 16-bit recording arrives bit for
bit, anything else is rounded to 1/32768 of full scale.

How a reply is drawn is the server's: a setting that is not in the request is its own default, and vLLM takes defaults
out of the checkpoint (`--generation-config vllm` stops that). A seed is sent with every request that samples; whether
replies can be repeated with it, and do not depend on what else the server does, is for the server to keep.

Invariant: one reply a request, in order, never more than `concurrency` requests at once; a request's failure is its
own. An empty system prompt is not sent: where the chat template puts one of its own then, the server decides.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import audio
from farm.servers import NO_KEY, Server, known_only
from farm.types import AudioSegment, Event, Failure, FailureKind, Reply, Request, Turn, Waveform
from models.conversation import messages
from models.decoding import Generation

if TYPE_CHECKING:
    from openai import APIError
    from openai.types.chat import ChatCompletion

INPUT_STATUSES = (400, 413, 422)
TIMEOUT_STATUSES = (408, 504)
NOT_STREAMED = "the server's answer is not streamed"
QUOTED_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """How an answer in speech is asked for."""

    voice: str
    """One of the server's."""
    dialect: str = "openai"
    """Where the voice stands in the request. `openai`: in `audio`. `vllm_omni`: beside `model`; that server reads no
    other and would speak with its default voice."""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Speech:
        """The settings of a configuration.

        Raises:
            ValueError: an unknown key, no voice, or a value that is none of its choices.
        """
        known_only("speech", cls, values)
        speech = cls(**{"voice": "", **values})
        if not speech.voice:
            raise ValueError("speech: voice must be given; speech=null answers in text only")
        if speech.dialect not in DIALECTS:
            raise ValueError(f"speech: dialect={speech.dialect}: one of {', '.join(DIALECTS)}")
        return speech


DIALECTS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "openai": lambda voice: {"audio": {"voice": voice, "format": "wav"}},
    "vllm_omni": lambda voice: {"voice": voice},
}
"""How a voice is put in the request's body."""


class OpenAIServer:
    """One model of one server.

    The client's own retries are used: connection errors, timeouts, 408, 409, 429 and 5xx are asked again after 0.5 s,
    1 s, 2 s ... (8 s at most, up to a quarter less at random), or when `Retry-After` says; a server that wants more
    than two minutes has failed the request.

    Args:
        checkpoint: `served_model`, the id the server offers; `label`, the user's name for the weights behind it.
        server: The fields of `Server`.
        generation: The settings of `models.decoding.Generation`.
        speech: The fields of `Speech`; None asks for text only.
        device: Given by the worker, of no use here.

    Raises:
        ValueError: wrong settings, or a server that cannot be asked, refuses the key or does not offer the model.
    """

    version = "1"

    @classmethod
    def check(cls, arguments: Mapping[str, Any]) -> None:
        """Refuses settings before anything is asked; raises ValueError."""
        Server.parse(arguments.get("server", {})).key()
        Generation.parse(arguments.get("generation", {}))
        if arguments.get("speech") is not None:
            Speech.parse(arguments["speech"])

    def __init__(
        self,
        *,
        checkpoint: Mapping[str, Any],
        server: Mapping[str, Any],
        generation: Mapping[str, Any],
        speech: Mapping[str, Any] | None = None,
        device: str = "cpu",
    ) -> None:
        from openai import OpenAI

        self._model = checkpoint["served_model"]
        self._server = Server.parse(server)
        self._speech = None if speech is None else Speech.parse(speech)
        self._generation = Generation.parse(generation)
        self._client: Any = OpenAI(
            base_url=self._server.base_url,
            api_key=self._server.key(),
            timeout=self._server.timeout_s,
            max_retries=self._server.attempts - 1,
        )
        self._refuse_unserved()

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers a batch; see `farm.types.SpeechModel`."""
        started_s = time.perf_counter()
        with ThreadPoolExecutor(self._server.concurrency) as pool:
            return list(pool.map(partial(self._one, started_s=started_s), requests))

    def _one(self, request: Request, started_s: float) -> Reply:
        from openai import APIError

        if len(request.turns) != 1:
            message = f"{len(request.turns)} turns; a served model answers 1"
            return Reply(failure=Failure(kind="input_error", message=message))
        question = self._question(request)
        try:
            completion = self._client.chat.completions.create(**question)
        except APIError as error:
            return Reply(failure=self._failure(error))
        except ValueError as error:
            return _broken(f"the server's answer is not JSON: {error}")
        return self._reply(completion, time.perf_counter() - started_s)

    def _question(self, request: Request) -> dict[str, Any]:
        """Arguments of the client's call; what it does not know itself (`top_k`) goes in the body all the same."""
        spoken_to = replace(request, system=request.system or None)
        body = {**_sampling(self._generation, request.seed), **_modalities(self._speech)}
        return {"model": self._model, "messages": messages(spoken_to, _parts), "extra_body": body}

    def _reply(self, completion: Any, ended_s: float) -> Reply:
        if (problem := _problem(completion)) is not None:
            quoted = self._without_key(str(completion))[:QUOTED_CHARACTERS]
            return _broken(f"the server's answer {problem}: {quoted}")
        try:
            speech = _spoken(completion) if self._speech is not None else None
        except ValueError as error:
            return _broken(f"the server's speech: {error}")
        usage = completion.usage
        return Reply(
            text=_text(completion),
            speech=speech,
            events=(*_text_events(ended_s), *([_onset(speech, ended_s)] if self._speech is not None else [])),
            tokens_in=usage.prompt_tokens if usage else None,
            tokens_out=usage.completion_tokens if usage else None,
            truncated=any(choice.finish_reason == "length" for choice in completion.choices),
        )

    def _failure(self, error: APIError) -> Failure:
        from openai import APIStatusError, APITimeoutError

        if isinstance(error, APITimeoutError):
            waited = f"no answer within timeout_s={self._server.timeout_s:g}"
            return Failure(kind="timeout", message=f"{waited}, attempts={self._server.attempts}")
        if not isinstance(error, APIStatusError):
            return Failure(kind="model_error", message=f"{self._server.base_url}: {self._said(error)}")
        return Failure(
            kind=_kind(error.status_code), message=f"HTTP {error.status_code}: {self._said(error)}"
        )

    def _refuse_unserved(self) -> None:
        from openai import APIError, APIStatusError

        where = f"{self._server.base_url}/models"
        try:
            # The client's own parsing breaks on an answer that is no list of models.
            served = self._client.models.with_raw_response.list().http_response.json()
        except APIStatusError as error:
            raise ValueError(
                f"{where}: HTTP {error.status_code}: {self._said(error)}{self._hint(error)}"
            ) from error
        except (APIError, ValueError) as error:
            raise ValueError(f"{where}: {self._said(error)}") from error
        names = _ids(served)
        if self._model not in names:
            raise ValueError(f"served_model={self._model}: {where} offers {', '.join(names) or 'none'}")

    def _said(self, error: Exception) -> str:
        """The server's own words, where it has some."""
        body = getattr(error, "body", None)
        words = body["message"] if isinstance(body, Mapping) and body.get("message") else error
        return self._without_key(str(words))

    def _without_key(self, text: str) -> str:
        """Servers quote what they were sent; failures are kept and shown."""
        key = self._server.key()
        return text if key == NO_KEY else text.replace(key, "***")

    def _hint(self, error: APIError) -> str:
        """What the user may have got wrong."""
        hints = {401: "api_key_env", 403: "api_key_env", 404: "base_url"}
        setting = hints.get(getattr(error, "status_code", 0))
        return f" ({setting}={getattr(self._server, setting)})" if setting else ""


def _ids(served: Any) -> list[str]:
    """Of the models in an answer, none where it is no such answer."""
    models = served.get("data") if isinstance(served, Mapping) else None
    found = models if isinstance(models, list) else []
    return [str(model["id"]) for model in found if isinstance(model, Mapping) and "id" in model]


# --- the request -------------------------------------------------------------------------------------------------


def _sampling(generation: Generation, seed: int) -> dict[str, Any]:
    """How the reply is drawn, as the request's body says it.

    The limit is `max_tokens`, not its successor `max_completion_tokens`: vLLM, SGLang and OpenAI's audio models take
    both, vllm-omni reads only the older and would run on to its own limit without a word. A server that no longer took
    it would say so.
    """
    limit = {"max_tokens": generation.max_new_tokens}
    if not generation.do_sample:
        return {**limit, "temperature": 0}
    # OpenAI refuses a request with top_k, whatever its value.
    top_k = {"top_k": generation.top_k} if generation.top_k is not None else {}
    return {
        **limit,
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        **top_k,
        "seed": seed,
    }


def _modalities(speech: Speech | None) -> dict[str, Any]:
    """What is wanted, said even where it is text alone: vllm-omni speaks unless it is told not to."""
    if speech is None:
        return {"modalities": ["text"]}
    return {"modalities": ["text", "audio"], **DIALECTS[speech.dialect](speech.voice)}


def _wav(segment: AudioSegment) -> str:
    """A 16-bit WAV as base64."""
    assert segment.waveform is not None, "a request reaches a model only after its audio was heard"
    return base64.b64encode(audio.encode_wav(segment.waveform)).decode()


def _parts(turn: Turn) -> list[dict[str, Any]]:
    return [
        {"type": "input_audio", "input_audio": {"data": _wav(segment), "format": "wav"}}
        if isinstance(segment, AudioSegment)
        else {"type": "text", "text": segment.text}
        for segment in turn
    ]


# --- the answer --------------------------------------------------------------------------------------------------


def _problem(completion: Any) -> str | None:
    """What keeps an answer from being a chat completion; servers are not held to the protocol by the client."""
    from openai.types.chat import ChatCompletion

    if not isinstance(completion, ChatCompletion) or not completion.choices:
        return "is not a chat completion"
    if not all(isinstance(choice.message.content, str | None) for choice in completion.choices):
        return "has content that is not text"
    return None


def _text(completion: ChatCompletion) -> str:
    """What was said, else what the speech says, else why nothing was; vllm-omni puts text and speech in two choices."""
    said = [choice.message for choice in completion.choices]
    transcripts = [message.audio.transcript for message in said if message.audio]
    texts = [*(m.content for m in said), *transcripts, *(m.refusal for m in said)]
    return next((text.strip() for text in texts if text), "")


def _spoken(completion: ChatCompletion) -> Waveform | None:
    """The answer's speech at the rate that its WAV states.

    Raises:
        ValueError: it is not base64, or no audio.
    """
    given = [choice.message.audio.data for choice in completion.choices if choice.message.audio]
    return audio.decode(base64.b64decode(given[0], validate=True), "WAV") if given and given[0] else None


def _text_events(ended_s: float) -> tuple[Event, Event]:
    return (
        Event(t_s=None, clock="wall", actor="server", kind="first_token", data=NOT_STREAMED),
        Event(t_s=ended_s, clock="wall", actor="server", kind="text_end"),
    )


def _onset(speech: Waveform | None, ended_s: float) -> Event:
    """Speech can begin when the whole answer is there."""
    if speech is None:
        return Event(
            t_s=None, clock="wall", actor="server", kind="speech_onset", data="the server sent no speech"
        )
    return Event(t_s=ended_s, clock="wall", actor="server", kind="speech_onset")


def _kind(status: int) -> FailureKind:
    if status in TIMEOUT_STATUSES:
        return "timeout"
    return "input_error" if status in INPUT_STATUSES else "model_error"


def _broken(message: str) -> Reply:
    return Reply(failure=Failure(kind="model_error", message=message))
