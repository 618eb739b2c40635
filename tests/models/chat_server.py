"""A chat server on this machine that misbehaves on demand, and remembers what it was asked."""

import base64
import io
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import soundfile

MODEL = "served"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server sends back."""

    body: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the server was sent."""

    body: dict[str, Any]
    headers: Mapping[str, str]
    at_s: float

    @property
    def words(self) -> str:
        """The question's text."""
        content = self.body["messages"][-1]["content"]
        return "".join(part["text"] for part in content if part["type"] == "text")

    @property
    def wav(self) -> bytes:
        """The question's audio."""
        content = self.body["messages"][-1]["content"]
        (part,) = [part["input_audio"] for part in content if part["type"] == "input_audio"]
        assert part["format"] == "wav"
        return base64.b64decode(part["data"])


Behaviour = Callable[[Asked, int], Answer]
"""A question, and how often it was asked before -> what to send."""


@dataclass(slots=True)
class ChatServer:
    """One that is running."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    most_at_once: int = 0
    at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, asked: Asked) -> int:
        with self.lock:
            before = sum(other.words == asked.words for other in self.asked)
            self.asked.append(asked)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        return before

    def end(self) -> None:
        with self.lock:
            self.at_once -= 1


def completion(text: str | None = "a reply", finish: str = "stop", **message: Any) -> str:
    """A chat completion's JSON."""
    said = {"role": "assistant", "content": text, **message}
    return json.dumps(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": MODEL,
            "choices": [{"index": 0, "message": said, "finish_reason": finish}],
            "usage": {"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34},
        }
    )


def spoken(data: str, transcript: str = "") -> dict[str, Any]:
    """A message's part with speech."""
    return {"audio": {"id": "a", "data": data, "expires_at": 0, "transcript": transcript}}


def wav(samples: Any, sample_rate_hz: int, subtype: str = "PCM_16") -> str:
    """A WAV as base64."""
    buffer = io.BytesIO()
    soundfile.write(buffer, np.asarray(samples), sample_rate_hz, format="WAV", subtype=subtype)
    return base64.b64encode(buffer.getvalue()).decode()


def error(status: int, message: str, **headers: str) -> Answer:
    """An error as these servers put it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, body=json.dumps({"error": {"message": message}}), headers=named)


OFFERS_IT = Answer(body=json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}))


@contextmanager
def serving(behaviour: Behaviour, models: Answer | Behaviour = OFFERS_IT) -> Iterator[ChatServer]:
    """A server that behaves so until the block ends."""
    server = ChatServer(url="")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = Asked(body={}, headers=self.headers, at_s=time.monotonic())
            found = models if isinstance(models, Answer) else models(asked, 0)
            self.send(found if self.path == "/v1/models" else error(404, "no such page"))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = Asked(body=body, headers=self.headers, at_s=time.monotonic())
            before = server.begin(asked)
            try:
                answer = behaviour(asked, before)
                time.sleep(answer.delay_s)
            finally:
                server.end()
            self.send(answer)

        def send(self, answer: Answer) -> None:
            body = answer.body.encode()
            headers = {"Content-Type": "application/json", **answer.headers}
            self.send_response(answer.status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            try:
                self.end_headers()
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                # The client had waited long enough.
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        server.url = f"http://127.0.0.1:{listening.server_address[1]}/v1"
        try:
            yield server
        finally:
            listening.shutdown()
