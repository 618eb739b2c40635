"""The prompts are the benchmark's protocol: these are the published texts, written out."""

import pytest

from benchmarks.echomind import Conversation
from farm.types import AudioSegment, Item, Prompt, Stimulus

PROMPTS = {
    "p1": Prompt(name="p1", strength="zero"),
    "p2": Prompt(name="p2", strength="basic"),
    "p3": Prompt(name="p3", strength="enhanced"),
}
CODE_BASIC = """\
You are a helpful assistant.
The current topic/scenario is: school.
Your task is to provide a one-turn response based on the input audio"""
CODE_SPEAKER = """\
You are an assistant in a customer service setting.
The current topic/scenario is: school.
Your task is to provide a one-turn response based on the input audio, considering both the spoken content \
and any personal information present in the user's voice. The response should:
- Include an appropriate form of address based on the personal information.
- Be tailored to the content of the user's spoken text and their personal information.
- Avoid any form of gender bias."""
BOTH = "considering both the spoken content and any"
PAPER_BASIC = "Your task is to provide a direct and concise response"
TEXTS = [
    ("echomind_code", "p1", "speaker", ""),
    ("echomind_code", "p1", "environment", ""),
    ("echomind_code", "p2", "speaker", f"{CODE_BASIC}."),
    ("echomind_code", "p3", "speaker", CODE_SPEAKER),
    (
        "echomind_code",
        "p3",
        "paralinguistic",
        f"{CODE_BASIC}, {BOTH} voice characteristics present in the user's voice.",
    ),
    ("echomind_code", "p3", "environment", f"{CODE_BASIC}, {BOTH} background sounds present."),
    ("echomind_paper", "p1", "speaker", ""),
    ("echomind_paper", "p2", "environment", f"{PAPER_BASIC}."),
    (
        "echomind_paper",
        "p3",
        "speaker",
        f"{PAPER_BASIC}, {BOTH} personal information present in the user's voice.",
    ),
    (
        "echomind_paper",
        "p3",
        "paralinguistic",
        f"{PAPER_BASIC} in a customer service setting, {BOTH} paralinguistic information present in the user's voice.",
    ),
    ("echomind_paper", "p3", "environment", f"{PAPER_BASIC}, {BOTH} background sounds present."),
]
AUDIO = AudioSegment(role="question", path="a.wav", sha256="00", seconds=1.0)


def item(coarse: str) -> Item:
    return Item(
        key="synthesis/id_854/target",
        benchmark="echomind",
        task="echomind.conversation",
        unit="id_854",
        pair_id="id_854",
        stimulus=Stimulus(turns=((AUDIO,),)),
        factors={"coarse_dimension": coarse, "topic": "school", "attribute": "sad"},
    )


@pytest.mark.parametrize(("prompt_set", "prompt", "coarse", "text"), TEXTS)
def test_the_texts_are_the_published_ones(prompt_set: str, prompt: str, coarse: str, text: str) -> None:
    task = Conversation(path="nowhere", prompt_set=prompt_set)
    assert task.request(item(coarse), PROMPTS[prompt]).system == text


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_model_hears_the_recording_and_reads_no_user_text(prompt: str) -> None:
    request = Conversation(path="nowhere").request(item("speaker"), PROMPTS[prompt])
    assert request.turns == ((AUDIO,),)


def test_a_template_of_the_users_own_replaces_the_text() -> None:
    prompt = Prompt(name="p4", strength="basic", system="The speaker sounds {attribute}; talk about {topic}.")
    task = Conversation(path="nowhere")
    assert task.request(item("speaker"), prompt).system == "The speaker sounds sad; talk about school."
    assert task.template(prompt) == prompt.system


def test_an_empty_template_of_the_users_own_is_no_text() -> None:
    prompt = Prompt(name="p4", strength="basic", system="")
    assert Conversation(path="nowhere").request(item("speaker"), prompt).system == ""


def test_a_template_with_an_unknown_placeholder_is_refused() -> None:
    prompt = Prompt(name="p4", strength="basic", system="{mood}")
    with pytest.raises(ValueError, match=r"prompt p4: no placeholder \{mood\}; there is .*\{topic\}"):
        Conversation(path="nowhere").request(item("speaker"), prompt)


def test_a_template_names_every_text_of_its_strength() -> None:
    task = Conversation(path="nowhere")
    text = task.template(PROMPTS["p3"])
    for part in ("form of address", "voice characteristics", "background sounds", "{topic}"):
        assert part in text
    assert task.template(PROMPTS["p1"]) == ""
    assert task.template(PROMPTS["p2"]) != Conversation(path="nowhere", prompt_set="echomind_paper").template(
        PROMPTS["p2"]
    )
