"""vLLM in a worker's environment, for real: its greedy tokens are transformers' own, item by item."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farm.types import AudioSegment, Reply, Request, TextSegment
from models.chat_audio import ChatAudio
from tests.models.tiny import asked, checkpoint, option, with_seed, written
from tests.vllm.environment import engine_replies, opinionated

ARCHITECTURES = {
    "qwen2_audio": "tiny_qwen2_audio",
    "audio_flamingo3": "tiny_audio_flamingo3",
    "qwen2_5_omni": "tiny_qwen2_5_omni_text",
    "voxtral": "tiny_voxtral",
}
"""Architecture -> the option that has transformers write the same."""
GREEDY = {"max_new_tokens": 12, "do_sample": False}
SAMPLED = {"max_new_tokens": 12, "do_sample": True, "temperature": 1.0, "top_p": 0.95}
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


def two_clips(architecture: str) -> Request:
    first, second = asked(architecture, 1.0, "And this?", 6), asked(architecture, 2.0, "Who?", 7)
    return replace(first, turns=(first.turns[0] + second.turns[0],))


def marked(architecture: str) -> Request:
    """A text that holds what stands for audio."""
    marker = {"audio_flamingo3": "<sound>", "voxtral": "[AUDIO]"}.get(architecture, "<|AUDIO|>")
    return asked(architecture, 1.0, f"{marker} is what?", 8)


def text_alone(architecture: str) -> Request:
    return replace(asked(architecture, 1.0, "", 1), turns=((TextSegment(role="question", text="Who?"),),))


def unheard() -> Request:
    """Breaks whatever batch it is in."""
    clip = AudioSegment(role="question", path="", sha256="", seconds=1.0)
    return Request(system="", turns=((clip,),))


def timed(
    architecture: str, batches: list[list[Request]], folder: Path, **changes: Any
) -> list[tuple[list[Reply], float]]:
    chosen = option(f"tiny_{architecture}_vllm")
    weights = opinionated(checkpoint(architecture), folder / "checkpoint")
    return engine_replies(chosen, batches, folder, checkpoint={"path": str(weights)}, **changes)


def engine(
    architecture: str, batches: list[list[Request]], folder: Path, **changes: Any
) -> list[list[Reply]]:
    return [replies for replies, _ in timed(architecture, batches, folder, **changes)]


def by_transformers(architecture: str, batch: list[Request]) -> list[Reply]:
    settings = option(ARCHITECTURES[architecture])["adapter"]
    model = ChatAudio(
        checkpoint={"path": str(checkpoint(architecture))},
        model_class=settings["model_class"],
        prompt_format=settings["prompt_format"],
        generation=GREEDY,
        dtype="float32",
        attention="sdpa",
    )
    return written(model, batch)


def said(replies: list[Reply]) -> list[tuple[Any, ...]]:
    assert [reply.failure for reply in replies] == [None] * len(replies)
    return [(r.text, r.tokens_in, r.tokens_out, r.truncated) for r in replies]


@pytest.fixture(scope="module", params=ARCHITECTURES)
def greedy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[list[Reply]]]:
    """An architecture, and its replies: together, shuffled, each alone, and to what is put together differently."""
    architecture = str(request.param)
    five = requests(architecture)
    batches = [five, [five[i] for i in ORDER], *([one] for one in five)]
    batches += [[two_clips(architecture), text_alone(architecture), marked(architecture), five[0]]]
    return architecture, engine(architecture, batches, tmp_path_factory.mktemp("engine"), generation=GREEDY)


def test_greedy_tokens_are_those_of_transformers_item_by_item(greedy: tuple[str, list[list[Reply]]]) -> None:
    architecture, (together, *_) = greedy
    theirs = said(by_transformers(architecture, requests(architecture)))
    assert said(together) == theirs
    assert len({text for text, *_ in theirs}) == len(theirs), "a model that hears nothing would pass"


def test_a_reply_does_not_depend_on_its_batch(greedy: tuple[str, list[list[Reply]]]) -> None:
    _, (together, shuffled, *rest) = greedy
    assert said(shuffled) == [said(together)[i] for i in ORDER]
    assert said([reply for alone in rest[:5] for reply in alone]) == said(together)


def test_no_clip_is_answered_as_by_transformers(greedy: tuple[str, list[list[Reply]]]) -> None:
    architecture, replies = greedy
    assert said([replies[-1][1]]) == said(by_transformers(architecture, [text_alone(architecture)]))


def test_several_clips_are_heard_as_by_transformers_or_refused(greedy: tuple[str, list[list[Reply]]]) -> None:
    architecture, replies = greedy
    clips = replies[-1][0]
    if architecture == "audio_flamingo3":
        assert clips.failure is not None and clips.failure.kind == "input_error"
        assert "At most 1 audio" in clips.failure.message
    else:
        assert said([clips]) == said(by_transformers(architecture, [two_clips(architecture)]))


def test_an_audio_marker_in_a_text_harms_no_other_request(greedy: tuple[str, list[list[Reply]]]) -> None:
    _, (together, *_, last) = greedy
    assert said(last[3:]) == said(together[:1])


def test_the_first_token_has_a_time(greedy: tuple[str, list[list[Reply]]]) -> None:
    _, (together, *_) = greedy
    for reply in together:
        (event,) = reply.events
        assert event.kind == "first_token" and event.t_s is not None and 0 < event.t_s < 60


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> list[list[Reply]]:
    """Qwen2-Audio drawing, with room for a prompt of 188 tokens."""
    five = requests("qwen2_audio")[:3]
    again = [with_seed(five[0], seed) for seed in (7, 8, 7, 2**63 - 1)]
    # Three tokens each: 195 in all, and more than the context has.
    long, longer = (asked("qwen2_audio", 1.0, "A B C " * count, 9) for count in (50, 500))
    batches = [five, [five[2], five[0]], [five[1]], again]
    batches += [[five[0], unheard()], [five[1]], [five[0], long, longer, five[1]]]
    folder = tmp_path_factory.mktemp("sampled")
    return engine("qwen2_audio", batches, folder, generation=SAMPLED, max_model_len=200)


def test_a_sampled_reply_is_drawn_from_its_own_seed_alone(sampled: list[list[Reply]]) -> None:
    together, turned, alone, (seven, eight, seven_again, huge), *_ = sampled
    assert said([*turned[::-1], *alone]) == [said(together)[i] for i in (0, 2, 1)]
    assert seven.text == seven_again.text != eight.text
    assert huge.failure is None


def test_a_prompt_that_leaves_a_reply_no_room_fails_alone(sampled: list[list[Reply]]) -> None:
    fits, long, longer, fits_too = sampled[-1]
    assert said([fits, fits_too]) == said(sampled[0][:2])
    assert long.failure is not None and long.failure.kind == "input_error"
    assert long.failure.message.endswith("tokens; the context has room for 188")
    assert longer.failure is not None and longer.failure.kind == "input_error"
    assert "maximum context length is 200" in longer.failure.message


def test_a_batch_that_breaks_leaves_nothing_for_the_next(sampled: list[list[Reply]]) -> None:
    together, *_, broken, after, _ = sampled
    assert broken == []
    assert said(after) == said(together[1:2])


def test_audio_is_padded_to_its_own_length_not_to_five_minutes(tmp_path: Path) -> None:
    """Qwen2.5-Omni's processor pads to 300 s: many times the work for the same tokens."""
    batches = [[asked("qwen2_5_omni", 1 + i % 9, "Who?", seed + i) for i in range(8)] for seed in (0, 100)]
    found = []
    for fitted in (True, False):
        (tmp_path / str(fitted)).mkdir()
        prompt_format = {"fit_audio_window": fitted}
        replies = timed("qwen2_5_omni", batches, tmp_path / str(fitted), prompt_format=prompt_format)
        found.append(replies[1])
    (ours, ours_s), (padded, padded_s) = found
    print(f"padding to 300 s: {padded_s / ours_s:.1f} times as long")
    assert said(ours) == said(padded)
    assert padded_s > 3 * ours_s
    assert option("tiny_qwen2_5_omni_vllm")["adapter"]["prompt_format"] == {"fit_audio_window": True}


def test_a_wrong_prompt_format_ends_the_loading(tmp_path: Path) -> None:
    batch = [[asked("qwen2_audio", 1.0, "Who?", 1)]]
    with pytest.raises(AssertionError, match="vLLM refuses .* prompt_format: Failed to apply"):
        engine("qwen2_audio", batch, tmp_path, prompt_format={"audio_marker": "no marker that it knows"})


def test_the_requests_differ_in_length() -> None:
    clips = [s for r in requests("qwen2_audio") for s in r.turns[0] if isinstance(s, AudioSegment)]
    assert len({clip.seconds for clip in clips}) == 5
