"""vLLM's OpenAI-compatible server, asked by the adapter for served models."""

import dataclasses
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from farm.types import AudioSegment, Request
from models.openai_server import OpenAIServer
from tests.models.tiny import adapter, asked, checkpoint, option
from tests.vllm.environment import PYTHON, opinionated, variables

ARCHITECTURE = "audio_flamingo3"
STARTS_WITHIN_S = 180
GREEDY = {"max_new_tokens": 12, "do_sample": False}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server's address; it is ended with the tests."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("server")
    settings = {
        "--model": str(opinionated(checkpoint(ARCHITECTURE), folder / "checkpoint")),
        "--served-model-name": "tiny",
        "--host": "127.0.0.1",
        "--port": str(port),
        "--dtype": "float32",
        "--max-model-len": "2048",
        "--max-num-seqs": "8",
        "--generation-config": "vllm",
    }
    command = [PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--enforce-eager"]
    log = folder / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, *(part for pair in settings.items() for part in pair)],
            stdout=file,
            stderr=subprocess.STDOUT,
            env=variables(option(f"tiny_{ARCHITECTURE}_vllm")),
        )
    try:
        wait_for(f"http://127.0.0.1:{port}", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(timeout=60)


def wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    ends_s = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < ends_s and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    raise AssertionError(f"the server did not start: {log.read_text()[-3000:]}")


def in_16_bits(request: Request) -> Request:
    """The request with the samples that a server gets."""
    clip, *rest = request.turns[0]
    assert isinstance(clip, AudioSegment) and clip.waveform is not None
    samples = np.rint(clip.waveform.samples * 32768).clip(-32768, 32767).astype(np.float32) / 32768
    rounded = dataclasses.replace(clip.waveform, samples=samples)
    return dataclasses.replace(request, turns=((dataclasses.replace(clip, waveform=rounded), *rest),))


@pytest.fixture(scope="module")
def requests() -> list[Request]:
    """Every one with a system prompt: an empty one is not sent to a server."""
    asked_for = [(1.3, "What is said?"), (4.1, "Who?"), (2.2, "Choose one of A, B, C or D."), (9.5, "Why?")]
    return [
        in_16_bits(asked(ARCHITECTURE, seconds, words, seed, "Answer kindly."))
        for seed, (seconds, words) in enumerate(asked_for)
    ]


def served(address: str, model: str = "tiny", **generation: object) -> OpenAIServer:
    return OpenAIServer(
        checkpoint={"served_model": model, "label": "tiny"},
        server={"base_url": address, "concurrency": 4},
        generation={**GREEDY, **generation},
    )


def test_a_served_model_says_greedily_what_transformers_says(server: str, requests: list[Request]) -> None:
    ours = adapter(ARCHITECTURE, generation=GREEDY).answer(requests)
    theirs = served(server).answer(requests)
    assert [reply.failure for reply in theirs] == [None] * 4
    # A character that the limit cut in two is left out by the server.
    said, expected = (
        [((r.text or "").rstrip("\N{REPLACEMENT CHARACTER}"), r.tokens_in, r.truncated) for r in replies]
        for replies in (theirs, ours)
    )
    assert said == expected
    assert len({reply.text for reply in ours}) == 4


def test_a_served_reply_is_drawn_from_its_requests_seed(server: str, requests: list[Request]) -> None:
    drawn = served(server, do_sample=True, temperature=1.0, top_p=0.95)
    seeded = [dataclasses.replace(requests[0], seed=seed) for seed in (7, 8, 7)]
    first, other, again = (reply.text for reply in drawn.answer(seeded))
    assert first == again != other


def test_too_long_a_prompt_is_an_input_error(server: str) -> None:
    (reply,) = served(server).answer([asked(ARCHITECTURE, 1.0, "word " * 3000, 1)])
    assert reply.failure is not None and reply.failure.kind == "input_error"
    assert "HTTP 400" in reply.failure.message and "context" in reply.failure.message


def test_another_model_is_refused_with_what_is_served(server: str) -> None:
    with pytest.raises(ValueError, match="offers tiny"):
        served(server, model="other")
