from pathlib import Path

import pytest

from farm.types import Failure
from models.language import Chat, Completion, TransformersChat
from tests.checkpoints import demo_weights, tiny_llama

GREEDY = {"max_new_tokens": 12}
SAMPLED = {"max_new_tokens": 10, "do_sample": True, "temperature": 0.7, "top_p": 0.9}
QUESTIONS = ["Hi.", "I lost my keys again, what should I do?", "It is raining.", "Tell me a joke.", ""]


def chat_model(checkpoint: dict[str, str], generation: dict[str, object]) -> TransformersChat:
    return TransformersChat(checkpoint=checkpoint, dtype="float32", attention="sdpa", generation=generation)


def replies(model: TransformersChat, chats: list[Chat]) -> list[str]:
    found = model.complete(chats)
    assert all(isinstance(completion, Completion) for completion in found), found
    return [completion.text for completion in found if isinstance(completion, Completion)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return tiny_llama(tmp_path_factory.mktemp("llama"))


@pytest.mark.parametrize(
    ("which", "generation"),
    [("tiny", GREEDY), ("tiny", SAMPLED), ("real", SAMPLED)],
    ids=["tiny-greedy", "tiny-sampled", "real-sampled"],
)
def test_a_reply_does_not_depend_on_its_batch(
    which: str, generation: dict[str, object], tiny: dict[str, str]
) -> None:
    model = chat_model(tiny if which == "tiny" else demo_weights("smollm2-135m-instruct"), generation)
    chats = [Chat(system="Be kind." * (i % 2), user=q, seed=100 + i) for i, q in enumerate(QUESTIONS)]
    together = replies(model, chats)
    assert together == [replies(model, [chat])[0] for chat in chats]
    order = [3, 0, 4, 2, 1]
    assert replies(model, [chats[i] for i in order]) == [together[i] for i in order]
    assert len(set(together)) == len(QUESTIONS)


def test_without_a_system_prompt_the_templates_own_is_not_put_in(tiny: dict[str, str]) -> None:
    """Seen through the number of tokens: a letter is a token of the tiny model."""
    model = chat_model(tiny, GREEDY)
    none, some = model.complete([Chat(system=s, user="a", seed=0) for s in ("", "An injected default")])
    assert isinstance(none, Completion)
    assert isinstance(some, Completion)
    assert some.tokens_in - none.tokens_in == len("An injected default")


def test_a_prompt_that_does_not_fit_fails_alone(tmp_path: Path) -> None:
    model = chat_model(tiny_llama(tmp_path, context=60), GREEDY)
    found = model.complete([Chat(system="", user=user, seed=1) for user in ("fits", "x" * 100, "too")])
    assert [isinstance(result, Failure) for result in found] == [False, True, False]
    assert isinstance(found[1], Failure)
    assert found[1].kind == "input_error"
    assert "the context has room for 48" in found[1].message


def test_tokens_are_counted_and_a_cut_reply_is_marked(tiny: dict[str, str]) -> None:
    (completion,) = chat_model(tiny, GREEDY).complete([Chat(system="", user="hello", seed=1)])
    assert isinstance(completion, Completion)
    assert completion.truncated == (completion.tokens_out == 12)
    assert completion.first_token_s > 0


def test_real_smollm_ends_a_short_reply_by_itself() -> None:
    model = chat_model(demo_weights("smollm2-135m-instruct"), {"max_new_tokens": 60})
    (completion,) = model.complete([Chat(system="", user="What is the capital of France?", seed=1)])
    assert isinstance(completion, Completion)
    assert "Paris" in completion.text
    assert not completion.truncated


def test_a_tokenizer_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    checkpoint = tiny_llama(tmp_path)
    for template in tmp_path.glob("chat_template*"):
        template.unlink()
    with pytest.raises(ValueError, match="no chat template"):
        chat_model(checkpoint, GREEDY)
