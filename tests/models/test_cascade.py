from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import yaml
from hydra.utils import instantiate
from omegaconf import OmegaConf

from farm.types import AudioSegment, Event, Reply, Request, Segment, TextSegment, Waveform
from models.cascade import Cascade
from speech.piper import Piper
from tests.checkpoints import ROOT, demo_weights

HERE = "tests.models.standins"


def cascade(*, speaks: bool = True) -> Cascade:
    return Cascade(
        recogniser={"_target_": f"{HERE}.CountingRecogniser"},
        language_model={"_target_": f"{HERE}.RepeatingModel"},
        synthesiser={"_target_": f"{HERE}.BeepingSynthesiser"} if speaks else None,
        device="cpu",
    )


def heard(waveform: Waveform, role: str = "question") -> AudioSegment:
    return AudioSegment(role=role, path="", sha256="", seconds=waveform.seconds, waveform=waveform)


def clip(frames: int, role: str = "question") -> AudioSegment:
    return heard(Waveform(samples=np.zeros(frames, dtype=np.float32), sample_rate_hz=16_000), role)


def text(words: str) -> TextSegment:
    return TextSegment(role="question", text=words)


def request(*segments: Segment, system: str = "", seed: int = 0) -> Request:
    return Request(system=system, turns=(segments,), seed=seed)


def event(reply: Reply, kind: str) -> Event:
    (found,) = [event for event in reply.events if event.kind == kind]
    return found


def test_a_request_becomes_a_chat_of_its_texts_and_transcripts_in_order() -> None:
    (reply,) = cascade().answer(
        [request(text("Listen:"), clip(5), text("A or B?"), clip(6), system="Be kind.", seed=9)]
    )
    assert reply.text == "[Be kind.|Listen:\n5 samples\nA or B?\n6 samples|9]"
    assert [e.data for e in reply.events if e.kind == "transcript"] == ["5 samples", "6 samples"]


def test_silence_between_questions_is_not_transcribed() -> None:
    (reply,) = cascade().answer([request(clip(5), clip(16_000, role="silence"), clip(6))])
    assert reply.text == "[|5 samples\n6 samples|0]"


def test_each_request_keeps_its_own_seed_speech_and_counts() -> None:
    first, second = cascade().answer([request(clip(5), seed=1), request(clip(1234), seed=3)])
    assert first.text == "[|5 samples|1]"
    assert second.text == "[|1234 samples|3]"
    assert first.speech is not None
    assert first.speech.sample_rate_hz == 8_000
    assert len(first.speech.samples) == len(first.text)
    assert (second.tokens_in, second.tokens_out, second.truncated, first.truncated) == (12, 7, True, False)


def test_a_request_that_cannot_be_heard_fails_and_its_neighbours_do_not() -> None:
    two_turns = Request(system="", turns=((clip(5),), (clip(6),)))
    replies = cascade().answer([request(clip(5)), request(clip(13)), two_turns, request(clip(7), clip(8))])
    assert [reply.failure.message if reply.failure else reply.text for reply in replies] == [
        "[|5 samples|0]",
        "unlucky",
        "2 turns; the cascade answers 1",
        "[|7 samples\n8 samples|0]",
    ]


def test_a_batch_in_which_nothing_can_be_heard_is_all_failures() -> None:
    assert [reply.failure is not None for reply in cascade().answer([request(clip(13))] * 2)] == [True, True]


def test_an_empty_transcript_asks_the_model_with_an_empty_turn() -> None:
    (reply,) = cascade().answer([request(clip(0), system="Be kind.")])
    assert reply.text == "[Be kind.||0]"
    assert event(reply, "transcript").data == ""


def test_an_answer_that_nobody_can_speak_is_an_answer_without_speech_and_says_why() -> None:
    (reply,) = cascade().answer([request(text("silent"))])
    assert reply.failure is None
    assert reply.text == "[|silent|0]"
    assert reply.speech is None
    onset = event(reply, "speech_onset")
    assert (onset.t_s, onset.data) == (None, "nothing to speak")


def test_a_broken_synthesiser_is_a_failure() -> None:
    fine, broken = cascade().answer([request(text("fine")), request(text("broken"))])
    assert fine.failure is None
    assert broken.failure is not None
    assert broken.failure.message == "out of breath"


def test_without_a_synthesiser_the_reply_is_text_and_the_onset_is_absent() -> None:
    (reply,) = cascade(speaks=False).answer([request(clip(5))])
    assert (reply.text, reply.speech) == ("[|5 samples|0]", None)
    assert event(reply, "speech_onset").t_s is None


def test_events_come_in_the_order_of_the_stages() -> None:
    (reply,) = cascade().answer([request(clip(5))])
    kinds = ["transcript", "first_token", "text_end", "speech_onset"]
    assert [e.kind for e in reply.events] == kinds
    transcript, _, text_end, onset = (event(reply, kind).t_s or 0 for kind in kinds)
    assert 0 <= transcript <= text_end <= onset


# --- with real weights, as the worker builds it ------------------------------------------------------------------


def configured(name: str) -> dict[str, Any]:
    """`conf/model/<name>.yaml` with `weights` where they lie here."""
    option = yaml.safe_load((ROOT / "conf" / "model" / f"{name}.yaml").read_text())
    whole = OmegaConf.create({"weights": str(ROOT / "weights"), "option": option})
    resolved = OmegaConf.to_container(whole, resolve=True)
    assert isinstance(resolved, dict)
    return dict(resolved["option"])


@pytest.fixture(scope="module")
def real() -> Any:
    for name in ("whisper-tiny.en-ct2", "smollm2-135m-instruct", "piper-joe"):
        demo_weights(name)
    return instantiate(configured("cascade_cpu")["adapter"], device="cpu")


@pytest.fixture(scope="module")
def questions() -> list[Request]:
    spoken = Piper(checkpoint=demo_weights("piper-joe")).speak(
        ["What is the capital of France?", "I lost my keys again.", "It is raining and I forgot my coat."]
    )
    waves = [waveform for waveform in spoken if isinstance(waveform, Waveform)]
    return [
        request(heard(wave), system="Answer in one sentence.", seed=40 + i) for i, wave in enumerate(waves)
    ]


@pytest.fixture(scope="module")
def replies(real: Cascade, questions: list[Request]) -> list[Reply]:
    return real.answer(questions)


def same(first: Sequence[Reply], second: Sequence[Reply]) -> bool:
    """Whether replies agree in text and in every sample of their speech."""
    pairs = list(zip(first, second, strict=True))
    speeches = [(a.speech, b.speech) for a, b in pairs]
    return [a.text for a, _ in pairs] == [b.text for _, b in pairs] and all(
        a is not None and b is not None and np.array_equal(a.samples, b.samples) for a, b in speeches
    )


def test_the_demo_model_hears_answers_and_speaks(replies: list[Reply]) -> None:
    assert [event(reply, "transcript").data for reply in replies] == [
        "What is the capital of France?",
        "I lost my keys again.",
        "It is raining and I forgot my coat.",
    ]
    for reply in replies:
        assert reply.failure is None
        assert reply.text
        assert reply.speech is not None
        assert reply.speech.sample_rate_hz == configured("cascade_cpu")["capabilities"]["sample_rate_hz"]
        assert 0.5 < reply.speech.seconds < 20
        assert 0 < (reply.tokens_out or 0) <= 24


def test_a_sampled_spoken_reply_is_the_same_alone_and_in_any_batch(
    real: Cascade, questions: list[Request], replies: list[Reply]
) -> None:
    assert same(replies[:1], real.answer(questions[:1]))
    assert same(replies[:0:-1], real.answer(questions[:0:-1]))


def test_the_published_baseline_is_configured_like_the_demo() -> None:
    """Its weights are not here: what can be checked is that both options set the same arguments of the same class."""
    demo, baseline = configured("cascade_cpu")["adapter"], configured("whisper_llama")["adapter"]
    assert demo.keys() == baseline.keys()
    assert demo["_target_"] == baseline["_target_"]
    assert demo["language_model"].keys() == baseline["language_model"].keys()
    assert baseline["recogniser"]["checkpoint"] == {"repo": "openai/whisper-large-v3", "revision": None}


def test_asked_for_a_transcript_the_recogniser_answers_and_nobody_speaks() -> None:
    ask = TextSegment(role="transcribe", text="Write down what is said.")
    asked, talked, failed = cascade().answer(
        [request(clip(5), ask, system="Listen."), request(clip(6)), request(clip(13), ask)]
    )
    assert (asked.text, asked.speech) == ("5 samples", None)
    assert event(asked, "transcript").data == "5 samples"
    assert talked.text == "[|6 samples|0]" and talked.speech is not None
    assert failed.failure is not None and failed.failure.message == "unlucky"
