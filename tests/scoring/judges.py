"""A real HTTP server on this machine that answers as judges do, well or badly: each call takes the next behaviour."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Bench:
    """What the server was asked, and what it answers next."""

    answers: list[Any] = field(default_factory=list)
    """A string is an answer's content; a number an HTTP status; bytes a whole body; a dict a message; a float a nap."""
    otherwise: Any = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    def next(self) -> Any:
        with self.lock:
            return self.answers.pop(0) if self.answers else self.otherwise


@contextmanager
def serving(answers: Sequence[Any] = (), otherwise: Any = "") -> Iterator[Bench]:
    bench = Bench(list(answers), otherwise)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with bench.lock:
                bench.asked.append(body)
                bench.keys.append(self.headers.get("Authorization", ""))
                bench.at_once += 1
                bench.most_at_once = max(bench.most_at_once, bench.at_once)
            try:
                self._answer(bench.next())
            finally:
                with bench.lock:
                    bench.at_once -= 1

        def _answer(self, answer: Any) -> None:
            if isinstance(answer, float):
                time.sleep(answer)
                answer = bench.otherwise
            if isinstance(answer, int):
                key = self.headers.get("Authorization", "")
                self._send(answer, json.dumps({"error": {"message": f"no: {key}"}}).encode())
            elif isinstance(answer, bytes):
                self._send(200, answer)
            else:
                message = answer if isinstance(answer, dict) else {"role": "assistant", "content": answer}
                choice = {"index": 0, "finish_reason": "stop", "message": message}
                made = {
                    "id": "1",
                    "object": "chat.completion",
                    "created": 0,
                    "model": "m",
                    "choices": [choice],
                }
                self._send(200, json.dumps(made).encode())

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if status == 429:
                self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    bench.url = f"http://127.0.0.1:{server.server_port}/v1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield bench
    finally:
        server.shutdown()
        server.server_close()
