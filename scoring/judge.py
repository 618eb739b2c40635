"""Judges: models behind an OpenAI-compatible endpoint that give points for a reply's words or its voice.

EchoMind's C1 to C4 (published with GPT-4o) and VES (published with Gemini 2.5 Pro), with rubrics of our own
(`scoring/rubrics.py`); see arXiv 2510.22758, section 4.2.4.

Invariant: one score for each of a rubric's metrics for every reply: points, or a status and a reason. An answer without
valid points is a `judge_error`, which the next run tries again; it is never a 0 and nothing of it is kept. The rubric's
text and the judge's name are part of every score's identity, its address and key are not.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import audio
from farm import ids
from farm.servers import Server
from farm.types import AudioSegment, Item, Reply, Score, ScoreStatus, TextSegment, Waveform
from scoring.judgement import JudgementError, parse
from scoring.rubrics import RUBRICS

if TYPE_CHECKING:
    from openai import OpenAI

ASKED_AT_MOST = 2
"""Times a judge is asked about one reply in one run: once more where its answer could not be used."""
MAX_TOKENS = 1024
"""Of an answer; thinking judges need room before it."""
SPOKEN_LIKE_NOBODY = "an ordinary voice, with nothing special to be heard"


class Judge:
    """One judge and one rubric.

    Args:
        rubric: `text` (C1 to C4 of the words), `speech` (VES, hears the reply), `dialogue` (VES, hears both sides).
        judge: `checkpoint` with `served_model` (the name that the endpoint knows) and `label` (yours, for the weights
            behind it), `server` (the fields of `farm.servers.Server`), `hears` (whether it takes audio), `schema`
            (whether it takes a JSON schema), `max_calls` (of one run of the scorer; null is no limit).
        suffix: of the metrics' names, where several judges stand side by side.
        device: given by the worker, of no use here.

    Raises:
        ValueError: wrong settings, or no key.
    """

    version = "1"

    @classmethod
    def check(cls, arguments: Mapping[str, Any]) -> None:
        """Refuses settings before anything is asked; raises ValueError."""
        rubric, judge = str(arguments.get("rubric")), arguments.get("judge") or {}
        if rubric not in RUBRICS:
            raise ValueError(f"rubric={rubric}: one of {', '.join(RUBRICS)}")
        checkpoint = judge.get("checkpoint") or {}
        if not checkpoint.get("served_model") or not checkpoint.get("label"):
            raise ValueError(
                "judge: checkpoint needs served_model, and a label that names the weights behind it"
            )
        if RUBRICS[rubric].hears and not judge.get("hears"):
            raise ValueError(
                f"judge {checkpoint['served_model']} takes no audio (hears: false); {rubric} needs it"
            )
        limit = judge.get("max_calls")
        if limit is not None and (not isinstance(limit, int) or limit < 0):
            raise ValueError(f"judge: max_calls={limit}: a whole number of at least 0, or null")
        Server.parse(judge.get("server", {})).key()

    @classmethod
    def weights_fingerprint(cls, config: Mapping[str, Any]) -> str:
        """Of the rubric's text and of what answers."""
        checkpoint = config["judge"]["checkpoint"]
        rubric = RUBRICS[config["rubric"]].digest()
        return ids.digest([rubric, checkpoint["served_model"], checkpoint["label"]])

    def __init__(
        self, *, rubric: str, judge: Mapping[str, Any], suffix: str = "", device: str = "cpu"
    ) -> None:
        from openai import OpenAI

        self.check({"rubric": rubric, "judge": judge})
        self._rubric = RUBRICS[rubric]
        self._names = tuple(f"{name}{suffix}" for name in self._rubric.metrics)
        self._model = str(judge["checkpoint"]["served_model"])
        self._rater = f"{self._model}#{judge['checkpoint']['label']}"
        self._schema = bool(judge.get("schema", True))
        self._server = Server.parse(judge["server"])
        self._budget = _Budget(judge.get("max_calls"))
        self._client: OpenAI = OpenAI(
            base_url=self._server.base_url,
            api_key=self._server.key(),
            timeout=self._server.timeout_s,
            max_retries=self._server.attempts - 1,
        )

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """Points for each reply, asked for side by side."""
        with ThreadPoolExecutor(self._server.concurrency) as pool:
            return list(pool.map(lambda pair: self._one(*pair), heard))

    def _one(self, item: Item, reply: Reply) -> list[Score]:
        from openai import APIError

        if why := self._inapplicable(item, reply):
            return self._without("not_applicable", why)
        try:
            messages = self._messages(item, reply)
        except ValueError as error:
            return self._without("failed", str(error))
        try:
            points = self._points(messages)
        except _OverBudget as error:
            return self._without("unavailable", str(error))
        except JudgementError as error:
            return self._without("judge_error", str(error))
        except APIError as error:
            return self._without("judge_error", self._quoted(f"{type(error).__name__}: {error}"))
        except ValueError as error:
            return self._without("judge_error", f"the answer is not JSON: {error}")
        return [
            Score(name=name, value=float(points[key]), rater=self._rater, rater_kind="model")
            for name, key in zip(self._names, self._rubric.keys, strict=True)
        ]

    def _inapplicable(self, item: Item, reply: Reply) -> str:
        if "reply" in self._rubric.hears and reply.speech is None:
            return "the reply has no speech"
        if not self._rubric.hears and not (reply.text or "").strip():
            return "the reply has no text"
        return "" if "transcript" in item.gold or self._rubric.hears else "the item has no transcript"

    def _points(self, messages: list[dict[str, Any]]) -> dict[str, int]:
        """Asked again, with what was wrong, where an answer could not be used."""
        for attempt in range(1, ASKED_AT_MOST + 1):
            answer = self._asked(messages)
            try:
                return parse(answer, self._rubric.keys)
            except JudgementError as error:
                if attempt == ASKED_AT_MOST:
                    raise
                wrong = f"That answer cannot be used ({error}). Answer with the JSON object alone."
                messages = [
                    *messages,
                    {"role": "assistant", "content": answer or "(nothing)"},
                    {"role": "user", "content": wrong},
                ]
        raise AssertionError("unreachable")

    def _asked(self, messages: list[dict[str, Any]]) -> str:
        self._budget.spend()
        more: dict[str, Any] = {}
        if self._schema:
            schema = {"name": "points", "schema": self._rubric.schema(), "strict": True}
            more["response_format"] = {"type": "json_schema", "json_schema": schema}
        client: Any = self._client
        completion = client.chat.completions.create(
            model=self._model,
            messages=messages,
            temperature=0,
            max_tokens=MAX_TOKENS,
            **more,
        )
        choices = getattr(completion, "choices", None)
        if not choices:
            raise JudgementError(f"no chat completion: {self._quoted(str(completion))[:160]}")
        message = choices[0].message
        if getattr(message, "refusal", None):
            raise JudgementError(f"refused: {str(message.refusal)[:160]}")
        return message.content if isinstance(message.content, str) else ""

    def _messages(self, item: Item, reply: Reply) -> list[dict[str, Any]]:
        asked: list[dict[str, Any]] = [{"type": "text", "text": self._situation(item, reply)}]
        if "user" in self._rubric.hears:
            asked += [{"type": "text", "text": "The user:"}, *map(_spoken, _recordings(item))]
        if "reply" in self._rubric.hears:
            assert reply.speech is not None, "_inapplicable lets no such reply pass"
            asked += [{"type": "text", "text": "The assistant's reply:"}, _spoken(reply.speech)]
        content: Any = asked if self._rubric.hears else asked[0]["text"]
        return [
            {"role": "system", "content": self._rubric.instructions()},
            {"role": "user", "content": content},
        ]

    def _situation(self, item: Item, reply: Reply) -> str:
        parts = {"TOPIC": item.factors.get("topic"), "USER SAYS": item.gold.get("transcript")}
        if "user" not in self._rubric.hears:
            parts["USER'S VOICE OR SURROUNDINGS"] = cue(item)
        if "reply" not in self._rubric.hears:
            parts["ASSISTANT REPLIES"] = reply.text
        return "\n".join(f"<<<{name}>>>\n{text}\n<<<END>>>" for name, text in parts.items() if text)

    def _without(self, status: ScoreStatus, reason: str) -> list[Score]:
        return [
            Score(name=name, status=status, reason=reason, rater=self._rater, rater_kind="model")
            for name in self._names
        ]

    def _quoted(self, text: str) -> str:
        """A server may quote the key it was given."""
        key = self._server.key()
        return text.replace(key, "[key]") if self._server.api_key_env else text


def cue(item: Item) -> str:
    """How the user sounded in the recording that was heard: the description that its voice has."""
    return str(item.gold.get("cue") or item.gold.get("spoken_info") or SPOKEN_LIKE_NOBODY)


def _recordings(item: Item) -> list[Waveform]:
    """What the user said, as recorded: the judge hears it before any audio condition."""
    segments = [s for turn in item.stimulus.turns for s in turn if not isinstance(s, TextSegment)]
    return [audio.load(s.path) for s in segments if isinstance(s, AudioSegment)]


def _spoken(waveform: Waveform) -> dict[str, Any]:
    data = base64.b64encode(audio.encode_wav(waveform)).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


class _OverBudget(Exception):
    pass


class _Budget:
    """Counts calls over all threads."""

    def __init__(self, limit: int | None) -> None:
        self._limit, self._spent, self._lock = limit, 0, threading.Lock()

    def spend(self) -> None:
        with self._lock:
            if self._limit is not None and self._spent >= self._limit:
                raise _OverBudget(f"max_calls={self._limit} reached; the same command again goes on")
            self._spent += 1
