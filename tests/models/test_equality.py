"""Replies do not depend on their batch: alone, in twos, all together or shuffled, in float32 they are the same.

Every architecture through its shipped option, greedy and seeded: tokens, and samples bit for bit where it speaks.
"""

from typing import Any

import numpy as np
import pytest

from farm.types import Reply, Request
from models.tiny import ARCHITECTURES
from tests.models.tiny import adapter, asked, with_seed, written

SPEAKING = ("qwen2_5_omni", "qwen3_omni", "moshi")
SAMPLED = {"do_sample": True, "temperature": 1.0, "top_p": 0.95}
GREEDY = {"do_sample": False}
ORDER = [3, 0, 4, 2, 1]


def requests(architecture: str) -> list[Request]:
    """Five, of unequal audio, text and system prompt."""
    return [
        asked(architecture, 1.3, "What is said?", 1),
        asked(architecture, 4.1, "Who?", 2, "Answer kindly."),
        asked(architecture, 2.2, "Choose one of A, B, C or D. " * 3, 3),
        asked(architecture, 9.5, "", 4, "Listen."),
        asked(architecture, 0.4, "How does the speaker feel about the weather this morning?", 5),
    ]


@pytest.fixture(scope="module", params=ARCHITECTURES)
def architecture(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=[GREEDY, SAMPLED], ids=["greedy", "seeded"])
def model(architecture: str, request: pytest.FixtureRequest) -> Any:
    changes: dict[str, Any] = {"generation": {"max_new_tokens": 12, **request.param}}
    if architecture == "qwen2_5_omni":
        changes["talker"] = {"max_new_tokens": 60, **request.param}
    if architecture == "qwen3_omni":
        changes["talker"] = {"max_new_tokens": 25, **request.param}
    if architecture == "moshi":
        changes["codes"] = request.param
    return adapter(architecture, **changes)


@pytest.fixture(scope="module")
def alone(model: Any, architecture: str) -> list[Reply]:
    return [written(model, [request])[0] for request in requests(architecture)]


def assert_same(left: list[Reply], right: list[Reply]) -> None:
    for reply, other in zip(left, right, strict=True):
        assert reply.failure is None
        assert (reply.text, reply.tokens_in, reply.tokens_out, reply.truncated) == (
            other.text,
            other.tokens_in,
            other.tokens_out,
            other.truncated,
        )
        assert (reply.speech is None) == (other.speech is None)
        if reply.speech is not None and other.speech is not None:
            np.testing.assert_array_equal(reply.speech.samples, other.speech.samples)


def test_twos_are_what_each_is_alone(model: Any, architecture: str, alone: list[Reply]) -> None:
    batch = requests(architecture)
    assert_same([reply for start in (0, 2, 4) for reply in written(model, batch[start : start + 2])], alone)


def test_five_are_what_each_is_alone(model: Any, architecture: str, alone: list[Reply]) -> None:
    assert_same(written(model, requests(architecture)), alone)


def test_a_shuffled_batch_is_what_each_is_alone(model: Any, architecture: str, alone: list[Reply]) -> None:
    batch = requests(architecture)
    assert_same(written(model, [batch[i] for i in ORDER]), [alone[i] for i in ORDER])


def test_replies_differ_and_those_that_speak_are_heard(architecture: str, alone: list[Reply]) -> None:
    """Otherwise the tests above would hold for a model that hears nothing."""
    assert len({reply.text for reply in alone}) == len(alone)
    for reply in alone:
        assert (reply.speech is not None) == (architecture in SPEAKING)
        if reply.speech is not None:
            assert reply.speech.sample_rate_hz == 24_000
            assert float(np.abs(reply.speech.samples).max()) > 0.01


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_seed_alone_changes_a_sampled_reply(architecture: str) -> None:
    model = adapter(architecture, generation={"max_new_tokens": 12, **SAMPLED})
    request = asked(architecture, 1.0, "Who?", 1)
    first, other, again = (written(model, [with_seed(request, seed)])[0].text for seed in (7, 8, 7))
    assert first == again != other
