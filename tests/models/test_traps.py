"""What has bitten everyone who ran these models in batches: one test a trap, on the tiny checkpoints."""

from typing import Any

import numpy as np
import pytest
import torch

from farm.types import Request
from models import loading
from models.audio_inputs import PromptFormat, prepare
from models.conversation import waveforms
from tests.models.tiny import adapter, asked, checkpoint, option, written

GREEDY: dict[str, Any] = {"do_sample": False}


def omni(**changes: Any) -> Any:
    talker = {"max_new_tokens": 40, **GREEDY}
    return adapter(
        "qwen2_5_omni", generation={"max_new_tokens": 8, **GREEDY}, **{"talker": talker, **changes}
    )


def assert_same_samples(left: Any, right: Any) -> None:
    assert left.speech is not None and right.speech is not None
    np.testing.assert_array_equal(left.speech.samples, right.speech.samples)


# --- Qwen2.5-Omni ------------------------------------------------------------------------------------------------


def test_the_talker_sees_a_batch_without_padding_as_it_sees_one_with_it() -> None:
    """`generate` drops a mask of ones, and the talker then leaves out the codec's start and padding embeddings."""
    model = omni()
    short, longer = asked("qwen2_5_omni", 1.0, "Who?", 1), asked("qwen2_5_omni", 3.0, "Who is it?", 2)
    alone, padded = model.answer([short])[0], model.answer([short, longer])[0]
    assert_same_samples(alone, padded)
    model._talker.forward = type(model._talker).forward.__get__(model._talker)
    trapped = model.answer([short])[0]
    assert not np.array_equal(trapped.speech.samples, alone.speech.samples), (
        "the trap is gone: so can the mend"
    )


def test_speech_is_drawn_from_the_requests_own_seed_and_touches_no_other() -> None:
    """token2wav starts from noise of the global generator, row after row."""
    model = omni()
    batch = [asked("qwen2_5_omni", 1.0, "Who?", 1), asked("qwen2_5_omni", 1.0, "What?", 2)]
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = model.answer(batch)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(2)
    for left, right in zip(first, model.answer(batch[::-1])[::-1], strict=True):
        assert_same_samples(left, right)


def test_audio_is_padded_to_the_longest_clip_not_to_five_minutes() -> None:
    """The processor's default is 300 s: 86 times the work for the same tokens."""
    processor = loading.load_processor({"path": str(checkpoint("qwen2_5_omni"))})
    settings = dict(option("tiny_qwen2_5_omni")["adapter"]["prompt_format"])
    batch = [asked("qwen2_5_omni", 1.0, "Who?", 1), asked("qwen2_5_omni", 2.5, "What?", 2)]
    window = processor.feature_extractor.n_samples
    assert window == 300 * 16_000
    fitted = prepare(processor, PromptFormat.parse(settings), batch)
    processor.feature_extractor.n_samples = window
    whole = prepare(processor, PromptFormat.parse({**settings, "fit_audio_window": False}), batch)
    frames = fitted["input_features"].shape[-1]
    assert frames < 3 * 100 < whole["input_features"].shape[-1]
    assert torch.equal(fitted["input_ids"], whole["input_ids"])
    used = fitted["feature_attention_mask"].bool()
    for ours, theirs, mask in zip(fitted["input_features"], whole["input_features"], used, strict=True):
        torch.testing.assert_close(ours[:, mask], theirs[:, :frames][:, mask], rtol=0, atol=0)


def test_the_thinker_alone_writes_what_the_whole_model_writes() -> None:
    """For text the talker is never loaded (`disable_talker` breaks the whole class's own text mode)."""
    from models.chat_audio import ChatAudio

    text = option("qwen2_5_omni_7b_text")["adapter"]
    spoken = option("tiny_qwen2_5_omni")["adapter"]
    thinker = ChatAudio(
        checkpoint={"path": str(checkpoint("qwen2_5_omni"))},
        model_class=text["model_class"],
        prompt_format={**text["prompt_format"], "system_prefix": spoken["prompt_format"]["system_prefix"]},
        generation={"max_new_tokens": 8},
        dtype="float32",
        attention="sdpa",
    )
    batch = [asked("qwen2_5_omni", 1.0, "Who?", 1), asked("qwen2_5_omni", 2.5, "What?", 2)]
    alone, whole = written(thinker, batch), written(omni(), batch)
    assert [reply.text for reply in alone] == [reply.text for reply in whole]
    assert not hasattr(thinker._model, "talker")


def test_a_voice_that_the_checkpoint_has_not_is_refused_with_those_it_has() -> None:
    with pytest.raises(Exception, match=r"voice=Nobody: one of .*Chelsie"):
        omni(voice="Nobody")


# --- Qwen3-Omni --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def omni3() -> Any:
    return adapter(
        "qwen3_omni",
        generation={"max_new_tokens": 8, **GREEDY},
        talker={"max_new_tokens": 25, **GREEDY},
    )


def generated(model: Any, batch: list[Request]) -> list[Any]:
    """What the model's own `generate` speaks, shape (frames,) each."""
    inputs = prepare(model._processor, model._format, batch)
    _, spoken = model._model.generate(
        **inputs,
        thinker_max_new_tokens=8,
        thinker_eos_token_id=sorted(model._stops),
        talker_max_new_tokens=25,
        talker_do_sample=False,
    )
    return [samples.reshape(-1).numpy() for samples in spoken]


@pytest.mark.parametrize("architecture", ["qwen2_5_omni", "qwen3_omni"])
def test_what_is_heard_of_a_clip_does_not_depend_on_its_being_the_longest(architecture: str) -> None:
    """The last frames of a clip that fills the window see it mirrored, those of a padded one see silence."""
    processor = loading.load_processor({"path": str(checkpoint(architecture))})
    settings = PromptFormat.parse(option(f"tiny_{architecture}")["adapter"]["prompt_format"])
    batch = [asked(architecture, 1.3, "Who?", 1), asked(architecture, 2.5, "What?", 2)]
    together = prepare(processor, settings, batch)
    for row, request in enumerate(batch):
        alone = prepare(processor, settings, [request])
        heard = alone["input_features"][0][:, alone["feature_attention_mask"][0].bool()]
        beside = together["input_features"][row][:, together["feature_attention_mask"][row].bool()]
        torch.testing.assert_close(heard, beside, rtol=0, atol=0)


def test_a_request_alone_is_spoken_as_by_the_models_own_generate(omni3: Any) -> None:
    for seconds, seed in ((1.0, 1), (3.0, 2)):
        request = asked("qwen3_omni", seconds, "Who?", seed, "Answer kindly.")
        (reply,) = omni3.answer([request])
        np.testing.assert_array_equal(reply.speech.samples, generated(omni3, [request])[0])


def test_a_text_that_ends_early_is_spoken_in_a_batch_as_alone(
    omni3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`generate` of a batch lets the talker read the end token of its shorter rows, too."""
    longer = asked("qwen3_omni", 3.0, "Who is it then?", 2)
    several = [asked("qwen3_omni", 1.0, "Who?", seed) for seed in range(3, 9)]
    spoken = written(omni3, [longer])[0].text.split()
    # A token that one of them says in the middle, and the longer one never.
    short, stop = next(
        (request, int(token))
        for request, reply in zip(several, written(omni3, several), strict=True)
        for place, token in enumerate(reply.text.split()[:6])
        if place >= 2 and reply.text.split().index(token) == place and token not in spoken
    )
    stops = frozenset({stop})
    monkeypatch.setattr(omni3, "_stops", stops)
    monkeypatch.setattr(omni3._thinker.generation_config, "eos_token_id", sorted(stops))
    alone, together = omni3.answer([short])[0], omni3.answer([short, longer])[0]
    assert together.tokens_out == alone.tokens_out and 2 <= alone.tokens_out < 8
    assert_same_samples(alone, together)
    np.testing.assert_array_equal(alone.speech.samples, generated(omni3, [short])[0])
    trapped = generated(omni3, [short, longer])[0]
    assert not np.array_equal(trapped, alone.speech.samples), "the trap is gone: so can the mend"


# --- Qwen2-Audio, Audio Flamingo 3, Voxtral ----------------------------------------------------------------------


def test_padding_is_on_the_left_though_the_tokenizer_was_saved_for_the_right() -> None:
    model = adapter("qwen2_audio", generation={"max_new_tokens": 4, **GREEDY})
    batch = [asked("qwen2_audio", 1.0, "Who?", 1), asked("qwen2_audio", 2.0, "Say more about it.", 2)]
    mask = prepare(model._processor, model._format, batch)["attention_mask"]
    assert mask[:, -1].all() and not mask.all()
    right = np.array(mask.flip(1))
    assert not right.all(), "the batch has no padding: the test would prove nothing"


def test_audio_flamingos_option_leaves_the_padding_to_its_processor() -> None:
    """`padding=True` reaches the audio too, and its windows no longer fit the encoder's positions."""
    settings = option("tiny_audio_flamingo3")["adapter"]["prompt_format"]
    assert "padding" not in settings.get("processor_options", {})
    model = adapter("audio_flamingo3", generation={"max_new_tokens": 4, **GREEDY})
    # 31 s: a window and a bit.
    replies = model.answer(
        [asked("audio_flamingo3", 31.0, "Who?", 1), asked("audio_flamingo3", 1.0, "What?", 2)]
    )
    assert [reply.failure for reply in replies] == [None, None]


def test_voxtral_takes_a_system_prompt_inside_the_users_turn_and_refuses_a_turn_of_its_own() -> None:
    model = adapter("voxtral", generation={"max_new_tokens": 4, **GREEDY})
    merged = asked("voxtral", 1.0, "Who?", 1, system="Answer kindly.")
    assert merged.system is None
    assert model.answer([merged])[0].failure is None
    native = Request(system="Answer kindly.", turns=merged.turns)
    with pytest.raises(Exception, match=r"(?i)system"):
        model.answer([native])


# --- Moshi -------------------------------------------------------------------------------------------------------


def test_moshi_hears_the_user() -> None:
    """Without an attention mask all of its prompt is masked, the user's audio with it."""
    model = adapter("moshi", generation={"max_new_tokens": 6, **GREEDY}, codes=GREEDY)
    one, other = (written(model, [asked("moshi", 2.0, "", seed)])[0] for seed in (1, 2))
    assert one.text != other.text or not np.array_equal(one.speech.samples, other.speech.samples)


def test_moshi_gets_the_same_silence_before_a_clip_whatever_its_batch() -> None:
    """Silence is input to it: padded to the batch's longest, a clip would be answered by its neighbours' length."""
    model = adapter("moshi", generation={"max_new_tokens": 4, **GREEDY}, codes=GREEDY)
    clip = asked("moshi", 1.0, "", 1)
    (spoken,) = waveforms(clip)
    padded = model._clip(clip)
    step = round(option("tiny_moshi")["adapter"]["pad_to_s"] * model._rate_hz / model._frame) * model._frame
    assert len(padded) == step
    assert not padded[: step - int(spoken.seconds * model._rate_hz) - 1].any()
    assert_same_samples(model.answer([clip])[0], model.answer([clip, asked("moshi", 9.0, "", 2)])[0])


def test_moshis_reply_is_its_answer_without_the_prompt() -> None:
    model = adapter("moshi", generation={"max_new_tokens": 6, **GREEDY}, codes=GREEDY)
    reply = model.answer([asked("moshi", 5.0, "", 1)])[0]
    assert reply.speech.seconds == pytest.approx(6 / 12.5, abs=0.081)


# --- all of them -------------------------------------------------------------------------------------------------


def test_a_prompt_beyond_the_context_fails_alone() -> None:
    model = adapter("qwen2_audio", generation={"max_new_tokens": 4, **GREEDY})
    model._room = 60
    long = asked("qwen2_audio", 1.0, "word " * 200, 1)
    replies = model.answer([asked("qwen2_audio", 0.4, "Who?", 1), long])
    assert replies[0].failure is None
    assert replies[1].failure is not None and replies[1].failure.kind == "input_error"
    assert "the context has room for 60" in replies[1].failure.message


def test_nothing_of_how_a_reply_is_drawn_comes_from_the_checkpoint() -> None:
    model = adapter("qwen2_audio", generation={"max_new_tokens": 4, **GREEDY})
    left = {k: v for k, v in model._model.generation_config.to_diff_dict().items() if v is not None}
    assert set(left) <= {"bos_token_id", "eos_token_id", "pad_token_id", "transformers_version"}


def test_a_checkpoint_that_lacks_weights_is_refused_not_filled_at_random() -> None:
    from models.loading import Placement

    placement = Placement(dtype="float32", attention="eager", device="cpu")
    with pytest.raises(ValueError, match="no weights for"):
        loading.load("Qwen2ForCausalLM", {"path": str(checkpoint("qwen2_audio"))}, placement)
    with pytest.raises(ValueError, match="has no class NoSuchModel"):
        loading.load("NoSuchModel", {"path": str(checkpoint("qwen2_audio"))}, placement)
