"""The adapter for served models against a real HTTP server that misbehaves in every way that was thought of."""

import base64
import io
import json
import socket
from typing import Any

import numpy as np
import pytest
import soundfile

from farm.types import AudioSegment, Reply, Request, TextSegment, Waveform
from models.openai_server import OpenAIServer
from tests.models.chat_server import (
    MODEL,
    Answer,
    Asked,
    Behaviour,
    ChatServer,
    completion,
    error,
    serving,
    spoken,
    wav,
)

KEY = "sk-this-must-stay-secret"
SAMPLED = {"max_new_tokens": 16, "do_sample": True, "temperature": 0.7, "top_p": 0.9}


def fine(asked: Asked, before: int) -> Answer:
    return Answer(body=completion(f"reply to {asked.words}"))


def always(answer: Answer) -> Behaviour:
    return lambda asked, before: answer


def adapter(served: ChatServer | str, /, **changes: Any) -> OpenAIServer:
    url = served if isinstance(served, str) else served.url
    settings = {"base_url": url, "attempts": 2, "timeout_s": 10.0, **changes.pop("server", {})}
    arguments = {
        "checkpoint": {"served_model": MODEL, "label": "test"},
        "generation": {"max_new_tokens": 16},
        "server": settings,
    }
    return OpenAIServer(**{**arguments, **changes})


def asked(words: str = "Who?", *, system: str | None = "", seed: int = 0, samples: Any = None) -> Request:
    heard = np.zeros(160, np.float32) if samples is None else samples
    waveform = Waveform(samples=heard, sample_rate_hz=16_000)
    clip = AudioSegment(role="question", path="", sha256="", seconds=waveform.seconds, waveform=waveform)
    return Request(system=system, turns=((clip, TextSegment(role="question", text=words)),), seed=seed)


def answered(behaviour: Behaviour, *requests: Request, **changes: Any) -> list[Reply]:
    with serving(behaviour) as server:
        return adapter(server, **changes).answer(requests or [asked()])


def failure(reply: Reply) -> tuple[str, str]:
    assert reply.failure is not None and reply.text is None
    return reply.failure.kind, reply.failure.message


# --- what is sent ------------------------------------------------------------------------------------------------


def sent(request: Request, **changes: Any) -> Asked:
    with serving(fine) as server:
        adapter(server, **changes).answer([request])
        (question,) = server.asked
    return question


def test_a_sampled_request_carries_its_own_seed_and_every_parameter() -> None:
    body = sent(asked(seed=77), generation={**SAMPLED, "top_k": 20}).body
    drawn = {"max_tokens": 16, "temperature": 0.7, "top_p": 0.9, "top_k": 20, "seed": 77}
    assert {key: body.get(key) for key in drawn} == drawn
    assert body["model"] == MODEL and body["modalities"] == ["text"]


def test_a_greedy_request_is_temperature_0_and_nothing_else() -> None:
    body = sent(asked(seed=77)).body
    assert body["temperature"] == 0
    assert not {"seed", "top_p", "top_k"} & set(body)


def test_a_server_that_knows_no_top_k_is_sent_none() -> None:
    assert "top_k" not in sent(asked(), generation=SAMPLED).body


def test_a_system_prompt_is_a_turn_of_its_own_and_an_empty_one_is_none() -> None:
    def roles(system: str | None) -> list[str]:
        return [message["role"] for message in sent(asked(system=system)).body["messages"]]

    assert roles("Be kind.") == ["system", "user"]
    assert roles("") == roles(None) == ["user"]


def test_the_turns_segments_keep_their_order() -> None:
    kinds = [part["type"] for part in sent(asked()).body["messages"][-1]["content"]]
    assert kinds == ["input_audio", "text"]


def test_a_16_bit_recording_arrives_bit_for_bit_at_its_own_rate() -> None:
    recorded = np.array([0, 1, -1, 12345, 32767, -32768, -2, 7], np.int16)
    heard = recorded.astype(np.float32) / np.float32(32768)
    samples, rate = soundfile.read(io.BytesIO(sent(asked(samples=heard)).wav), dtype="int16")
    np.testing.assert_array_equal(samples, recorded)
    assert rate == 16_000


def test_samples_beyond_full_scale_are_cut_not_wrapped() -> None:
    heard = np.array([1.5, -1.5, 0.25], np.float32)
    samples, _ = soundfile.read(io.BytesIO(sent(asked(samples=heard)).wav), dtype="int16")
    assert samples.tolist() == [32767, -32768, 8192]


@pytest.mark.parametrize(
    ("dialect", "where"),
    [("openai", {"audio": {"voice": "Chelsie", "format": "wav"}}), ("vllm_omni", {"voice": "Chelsie"})],
)
def test_speech_is_asked_for_as_the_server_reads_it(dialect: str, where: dict[str, Any]) -> None:
    body = sent(asked(), speech={"voice": "Chelsie", "dialect": dialect}).body
    assert body["modalities"] == ["text", "audio"]
    assert {key: body.get(key) for key in ("audio", "voice") if key in body} == where


def test_the_key_comes_from_the_named_variable_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("FARM_KEY", KEY)
    assert sent(asked(), server={"api_key_env": "FARM_KEY"}).headers["Authorization"] == f"Bearer {KEY}"
    assert "somebody" not in sent(asked()).headers["Authorization"]


# --- what comes back ---------------------------------------------------------------------------------------------


def test_one_reply_a_request_in_order_whichever_is_ready_first() -> None:
    def slowest_first(asked: Asked, before: int) -> Answer:
        return Answer(body=completion(asked.words), delay_s=0.3 / (1 + int(asked.words)))

    replies = answered(slowest_first, *(asked(str(i)) for i in range(12)), server={"concurrency": 6})
    assert [reply.text for reply in replies] == [str(i) for i in range(12)]


def test_tokens_are_counted_and_the_first_one_is_said_to_be_unknown() -> None:
    (reply,) = answered(fine)
    assert (reply.text, reply.tokens_in, reply.tokens_out) == ("reply to Who?", 30, 4)
    first, end = reply.events
    assert (first.kind, first.t_s) == ("first_token", None) and "not streamed" in first.data
    assert end.kind == "text_end" and end.t_s is not None and end.t_s > 0


@pytest.mark.parametrize(("finish", "truncated"), [("stop", False), ("length", True)])
def test_a_reply_that_was_cut_at_the_limit_says_so(finish: str, truncated: bool) -> None:
    (reply,) = answered(always(Answer(body=completion(finish=finish))))
    assert reply.truncated == truncated


def test_nothing_said_is_an_empty_reply_not_a_failure() -> None:
    (reply,) = answered(always(Answer(body=completion(None))))
    assert reply.text == "" and reply.failure is None


def test_speech_comes_at_the_rate_that_its_wav_states() -> None:
    said = np.array([0, 4096, -4096, 8192] * 50, np.int16)
    body = completion(None, **spoken(wav(said, 22_050), "Hello."))
    (reply,) = answered(always(Answer(body=body)), speech={"voice": "alloy"})
    assert reply.text == "Hello."
    assert reply.speech is not None and reply.speech.sample_rate_hz == 22_050
    np.testing.assert_array_equal(reply.speech.samples, said / np.float32(32768))
    assert [event.kind for event in reply.events] == ["first_token", "text_end", "speech_onset"]


def test_a_server_that_sends_no_speech_is_recorded_as_such() -> None:
    (reply,) = answered(fine, speech={"voice": "alloy"})
    onset = reply.events[-1]
    assert reply.speech is None and reply.failure is None
    assert (onset.kind, onset.t_s, onset.data) == ("speech_onset", None, "the server sent no speech")


@pytest.mark.parametrize(
    "data", ["%%% no base64 %%%", base64.b64encode(b"no audio").decode()], ids=["base64", "audio"]
)
def test_broken_speech_is_a_failure_of_its_request(data: str) -> None:
    def one_broken(asked: Asked, before: int) -> Answer:
        sound = data if asked.words == "broken" else wav(np.zeros(10, np.int16), 24_000)
        return Answer(body=completion("text", **spoken(sound)))

    broken, good = answered(one_broken, asked("broken"), asked("good"), speech={"voice": "alloy"})
    assert failure(broken)[0] == "model_error" and "the server's speech" in failure(broken)[1]
    assert good.failure is None and good.speech is not None


# --- what goes wrong ---------------------------------------------------------------------------------------------


def test_retry_after_is_waited_for() -> None:
    def busy_once(asked: Asked, before: int) -> Answer:
        return fine(asked, before) if before else error(429, "slow down", Retry_After="1.2")

    with serving(busy_once) as server:
        (reply,) = adapter(server).answer([asked()])
        first, second = server.asked
    assert reply.failure is None
    assert 1.2 <= second.at_s - first.at_s < 3.0


def test_a_server_that_stays_busy_fails_the_request_after_its_attempts() -> None:
    with serving(always(error(429, "slow down", Retry_After="0.05"))) as server:
        (reply,) = adapter(server, server={"attempts": 3}).answer([asked()])
        assert len(server.asked) == 3
    assert failure(reply) == ("model_error", "HTTP 429: slow down")


def test_an_error_of_the_server_is_tried_again() -> None:
    def stumbles(asked: Asked, before: int) -> Answer:
        return fine(asked, before) if before else error(500, "oops")

    assert answered(stumbles)[0].failure is None


def test_one_attempt_is_one_attempt() -> None:
    with serving(always(error(500, "oops"))) as server:
        (reply,) = adapter(server, server={"attempts": 1}).answer([asked()])
        assert len(server.asked) == 1
    assert failure(reply) == ("model_error", "HTTP 500: oops")


def test_no_answer_in_time_is_a_timeout() -> None:
    slow = always(Answer(body=completion(), delay_s=2.0))
    (reply,) = answered(slow, server={"timeout_s": 0.3, "attempts": 1})
    assert failure(reply) == ("timeout", "no answer within timeout_s=0.3, attempts=1")


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (error(400, "audio too long"), "input_error", "HTTP 400: audio too long"),
        (error(413, "too large"), "input_error", "HTTP 413: too large"),
        (error(504, "upstream"), "timeout", "HTTP 504: upstream"),
        (error(403, "not yours"), "model_error", "HTTP 403: not yours"),
        (Answer(body="{half a"), "model_error", "the server's answer is not JSON"),
        (Answer(body="<html>", headers={"Content-Type": "text/html"}), "model_error", "is not a chat comple"),
        (Answer(body='{"choices": []}'), "model_error", "the server's answer is not a chat completion"),
        (Answer(body='["a"]'), "model_error", "the server's answer is not a chat completion"),
        (Answer(body=completion({"no": "text"})), "model_error", "has content that is not text"),  # type: ignore[arg-type]
    ],
    ids=["400", "413", "504", "403", "half JSON", "a page", "no choices", "a list", "no text"],
)
def test_what_is_no_reply_is_a_failure_of_its_kind(answer: Answer, kind: str, said: str) -> None:
    (reply,) = answered(always(answer), server={"attempts": 1})
    found, message = failure(reply)
    assert found == kind and said in message


def test_a_failure_is_of_its_request_alone() -> None:
    def one_bad(asked: Asked, before: int) -> Answer:
        return error(400, "no") if asked.words == "3" else fine(asked, before)

    replies = answered(one_bad, *(asked(str(i)) for i in range(6)))
    assert [reply.failure is not None for reply in replies] == [i == 3 for i in range(6)]


def test_more_than_one_turn_is_refused_without_asking() -> None:
    with serving(fine) as server:
        request = asked()
        two = Request(system=None, turns=request.turns * 2)
        (reply,) = adapter(server).answer([two])
        assert server.asked == []
    assert failure(reply) == ("input_error", "2 turns; a served model answers 1")


def test_a_server_that_goes_away_fails_what_is_asked_of_it() -> None:
    with serving(fine) as server:
        model = adapter(server, server={"attempts": 1})
    (reply,) = model.answer([asked()])
    assert failure(reply)[0] == "model_error" and server.url in failure(reply)[1]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_never_more_requests_at_once_than_allowed(concurrency: int) -> None:
    with serving(always(Answer(body=completion(), delay_s=0.05))) as server:
        model = adapter(server, server={"concurrency": concurrency})
        model.answer([asked(str(i)) for i in range(16)])
        assert server.most_at_once == concurrency


@pytest.mark.parametrize("status", [401, 500])
def test_a_key_that_the_server_quotes_is_in_no_failure(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_KEY", KEY)

    def quotes(asked: Asked, before: int) -> Answer:
        return error(status, f"refused: {asked.headers['Authorization']}")

    def quotes_fully(asked: Asked, before: int) -> Answer:
        return Answer(body=json.dumps({"you sent": asked.headers["Authorization"]}))

    settings = {"api_key_env": "FARM_KEY", "attempts": 1}
    for behaviour in (quotes, quotes_fully):
        _, message = failure(answered(behaviour, server=settings)[0])
        assert KEY not in message and "***" in message
    with serving(fine, models=quotes) as server, pytest.raises(ValueError) as refused:
        adapter(server, server=settings)
    assert KEY not in str(refused.value) and "***" in str(refused.value)


# --- what is refused when it loads -------------------------------------------------------------------------------


def test_a_refused_key_names_the_setting() -> None:
    refuses = error(401, "no key")
    with (
        serving(fine, models=refuses) as server,
        pytest.raises(ValueError, match="HTTP 401: no key.*api_key_env"),
    ):
        adapter(server)


def test_a_wrong_path_names_the_address() -> None:
    with serving(fine) as server, pytest.raises(ValueError, match="HTTP 404.*base_url="):
        adapter(server.url.replace("/v1", "/v2"))


def test_a_model_that_is_not_offered_is_refused_with_those_that_are() -> None:
    with serving(fine) as server, pytest.raises(ValueError, match=f"served_model=other: .* offers {MODEL}"):
        adapter(server, checkpoint={"served_model": "other", "label": "x"})


@pytest.mark.parametrize("body", ["{half", "[]", '{"data": []}'])
def test_a_server_that_is_none_is_refused(body: str) -> None:
    with serving(fine, models=Answer(body=body)) as server, pytest.raises(ValueError, match="/models"):
        adapter(server)


def test_nobody_there_is_said_with_the_address() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
    with pytest.raises(ValueError, match=f"{url}/models: Connection error"):
        adapter(url, server={"attempts": 1})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"server": {"base_url": "localhost:8000"}}, "http:// or https://"),
        ({"server": {"base_url": "http://me:secret@host/v1"}}, "api_key_env"),
        ({"server": {"base_url": "http://h/v1", "api_key_env": "NOT_SET_ANYWHERE"}}, "no such environment"),
        ({"server": {"base_url": "http://h/v1", "concurrency": 0}}, "concurrency and attempts whole"),
        ({"server": {"base_url": "http://h/v1", "timeout_s": 0}}, "timeout_s > 0"),
        ({"server": {"base_url": "http://h/v1", "retries": 3}}, "no setting retries; it has base_url"),
        ({"speech": {"voice": ""}}, "voice must be given"),
        ({"speech": {"voice": "a", "dialect": "french"}}, "one of openai, vllm_omni"),
        ({"generation": {"max_new_tokens": 0}}, "max_new_tokens >= 1"),
    ],
)
def test_settings_are_refused_before_anything_is_asked(changes: dict[str, Any], said: str) -> None:
    given = {"server": {"base_url": "http://h/v1"}, "generation": {"max_new_tokens": 1}, **changes}
    with pytest.raises(ValueError) as refused:
        OpenAIServer.check(given)
    assert said in str(refused.value) and "secret" not in str(refused.value)
