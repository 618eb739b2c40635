"""Four tasks over the same recordings, each with its own words; gold by the voice that is heard."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.echomind import Conversation, Reasoning, Transcription, Understanding
from benchmarks.echomind_prompts import ORACLE
from farm.types import Instruction, Item, Prompt, TextSegment, Wording
from tests.benchmarks.echomind_folders import official, write_index, write_source

VOICES = ("target", "alternative", "neutral")
OWN = Prompt(name="own", strength="own")
P1 = Prompt(name="p1", strength="zero")
P2 = Prompt(name="p2", strength="basic")
P3 = Prompt(name="p3", strength="enhanced")
QWEN = (
    "You are Qwen, a virtual human developed by the Qwen Team, Alibaba Group, capable of perceiving auditory and "
    "visual inputs, as well as generating text and speech."
)
ASR_TASK = "\nYou task is to listen to the audio snippet carefully and answer the user's question."
ASR_USER = "Please transcribe the speech in the input audio into text."
MCQ_TASK = (
    "\nYour task is to determine the correct answer to a multiple-choice question based on an audio clip. Analyze the "
    "audio and select the most accurate answer (A, B, C, or D) without additional explanation."
    "\nPlease provide your answer in the format: 'The answer is: [A/B/C/D]'."
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    official(tmp_path / "EchoMind")
    return tmp_path / "EchoMind"


def texts(task: Any, item: Item, prompt: Prompt = OWN) -> tuple[str | None, list[str]]:
    request = task.request(item, prompt)
    return request.system, [s.text for turn in request.turns for s in turn if isinstance(s, TextSegment)]


def test_the_four_tasks_ask_about_the_same_recordings(root: Path) -> None:
    tasks: list[Any] = [Transcription, Understanding, Reasoning, Conversation]
    recordings = []
    for task in tasks:
        found = list(task(path=str(root), voice=VOICES).items())
        recordings.append(
            {(i.unit, s.sha256) for i in found for s in i.stimulus.turns[0] if hasattr(s, "sha256")}
        )
    assert recordings[0] == recordings[3]
    assert recordings[1] < recordings[0] and recordings[2] < recordings[0]


def test_transcripts_are_asked_for_in_the_published_words(root: Path) -> None:
    task = Transcription(path=str(root))
    item = next(task.items())
    assert texts(task, item) == (f"You are a helpful assistant. {ASR_TASK}", [ASR_USER])
    assert item.gold["transcript"] == "I got my exam back."
    assert item.task == "echomind.asr"


def test_questions_are_asked_in_the_published_words(root: Path) -> None:
    task = Reasoning(path=str(root))
    system, (user,) = texts(task, next(task.items()))
    assert system == f"You are a helpful assistant. {MCQ_TASK}"
    assert user == "\nQuestion: Does the audio contain sounds from multiple people?\nOptions:\nA. Yes\nB. No"


def test_a_models_default_system_prompt_stands_for_the_generic_line(root: Path) -> None:
    wording = Wording(default_system=QWEN)
    asr, mcq = (
        Transcription(path=str(root)).varied({}, wording),
        Understanding(path=str(root)).varied({}, wording),
    )
    assert texts(asr, next(asr.items()))[0] == f"{QWEN} {ASR_TASK}"
    assert texts(mcq, next(mcq.items()))[0] == f"{QWEN} {MCQ_TASK}"
    talk = Conversation(path=str(root)).varied({}, wording)
    sad, elderly, *_ = talk.items()
    assert texts(talk, sad, P1)[0] == ""
    assert texts(talk, sad, P2)[0] == (
        f"{QWEN}\nThe current topic/scenario is: school.\n"
        "Your task is to provide a one-turn response based on the input audio."
    )
    assert (texts(talk, elderly, P3)[0] or "").startswith(
        f"{QWEN}\nThe current topic/scenario is: family.\nYour task"
    )
    paper = Conversation(path=str(root), prompt_set="echomind_paper").varied({}, wording)
    assert texts(paper, sad, P2)[0] == "Your task is to provide a direct and concise response."


def test_a_model_whose_adapter_introduces_it_is_not_introduced_again(root: Path) -> None:
    wording = Wording(default_system="")
    asr, talk = (
        Transcription(path=str(root)).varied({}, wording),
        Conversation(path=str(root)).varied({}, wording),
    )
    assert texts(asr, next(asr.items()))[0] == ASR_TASK.lstrip()
    assert (texts(talk, next(talk.items()), P2)[0] or "").startswith("The current topic/scenario is: school.")


@pytest.mark.parametrize(
    "own",
    [
        Instruction(system="Convert the speech to text.", user=None),
        Instruction(system=None, user="What does the person say?"),
        Instruction(system="Focus on the audio clips and instruction.", user=ASR_USER),
    ],
)
def test_a_model_with_a_way_of_its_own_to_transcribe_is_asked_in_it(root: Path, own: Instruction) -> None:
    task = Transcription(path=str(root)).varied({}, Wording(transcribe=own))
    assert texts(task, next(task.items())) == (own.system, [own.user] if own.user else [])
    assert task.template(OWN) != Transcription(path=str(root)).template(OWN)


def test_prompts_cross_the_conversation_only() -> None:
    assert Conversation.prompts == () and list(Conversation.arms) == ["cue"]
    for task in (Transcription, Understanding, Reasoning):
        assert [prompt.name for prompt in task.prompts] == ["own"] and not task.arms


def test_a_prompt_of_strength_own_needs_its_text(root: Path) -> None:
    with pytest.raises(ValueError, match="strength own needs its text"):
        Conversation(path=str(root)).template(OWN)
    assert Conversation(path=str(root)).template(Prompt(name="mine", strength="own", system="Hi.")) == "Hi."


# --- gold by the voice that is heard -----------------------------------------------------------------------------


def with_replies(root: Path) -> None:
    (record, *rest) = official(root)
    record["target_audio_info"]["target_responses"] = ["I am sorry.", "Oh no."]
    record["alternative_audio_info"] |= {
        "alternative_responses": ["Well done!"],
        "alternative_spoken_info": "happy-toned expressive voice",
    }
    record["neutral_audio_info"]["neutral_responses"] = ["What was your grade?"]
    write_index(root, "synthesis", [record, *rest])


def test_each_voice_has_its_own_references_and_cue(tmp_path: Path) -> None:
    with_replies(tmp_path)
    target, alternative, neutral, *_ = Conversation(path=str(tmp_path), voice=VOICES).items()
    assert [i.gold["references"] for i in (target, alternative, neutral)] == [
        ["I am sorry.", "Oh no."],
        ["Well done!"],
        ["What was your grade?"],
    ]
    assert [i.gold["cue"] for i in (target, alternative, neutral)] == [
        "sad-toned expressive voice",
        "happy-toned expressive voice",
        "neutral voice, no vocal cue",
    ]
    assert "spoken_info" not in alternative.gold and "spoken_info" not in neutral.gold


@pytest.mark.parametrize(
    "fields",
    [
        {"high_eq_responses": ["So sorry."]},
        {"high_EQ_response": "So sorry."},
        {"responses": {"high_eq": ["So sorry."], "cue_agnostic": ["Hm."]}},
        {"target_responses": [{"text": "So sorry."}]},
        {"target_references": ["So sorry.", ""]},
    ],
)
def test_references_are_found_under_plausible_names(tmp_path: Path, fields: dict[str, Any]) -> None:
    record, *_ = official(tmp_path)
    write_index(tmp_path, "synthesis", [record | fields])
    assert [i.gold["references"] for i in Conversation(path=str(tmp_path)).items()] == [["So sorry."]]


@pytest.mark.parametrize("name", ["transcript", "text", "utterance", "speak_A"])
def test_the_words_are_found_under_plausible_names(tmp_path: Path, name: str) -> None:
    record, *_ = official(tmp_path)
    del record["speak_A"]
    write_index(tmp_path, "synthesis", [record | {name: "I got my exam back."}])
    assert next(Transcription(path=str(tmp_path)).items()).gold["transcript"] == "I got my exam back."


# --- the arm cue=oracle ------------------------------------------------------------------------------------------


def test_the_oracle_tells_the_cue_of_the_voice_that_is_heard(tmp_path: Path) -> None:
    with_replies(tmp_path)
    task = Conversation(path=str(tmp_path), voice=VOICES).varied({"cue": "oracle"}, Wording())
    found = list(task.items())
    notes = {item.key: texts(task, item, P1)[1] for item in found if (item.unit in ("id_854", "id_2500")
             and item.factors["voice_style"] != "alternative") or item.key.endswith("854/alternative")}  # fmt: skip
    assert notes == {
        "synthesis/id_854/target": [ORACLE["paralinguistic"].format(cue="sad-toned expressive voice")],
        "synthesis/id_854/alternative": [ORACLE["paralinguistic"].format(cue="happy-toned expressive voice")],
        "synthesis/id_854/neutral": [ORACLE["none"]],
        "synthesis/id_2500/target": [ORACLE["environment"].format(cue="sound of crowd's chatter")],
        "synthesis/id_2500/neutral": [ORACLE["none"]],
    }
    assert texts(task, found[0], P1)[0] == ""
    plain = Conversation(path=str(tmp_path))
    assert texts(plain, found[0], P1) == ("", [])
    assert task.template(P2) != plain.template(P2)


def test_an_oracle_that_does_not_know_the_cue_is_refused(root: Path) -> None:
    task = Conversation(path=str(root), voice=["alternative"]).varied({"cue": "oracle"}, Wording())
    with pytest.raises(ValueError, match="id_854/alternative: the data does not say what this voice carries"):
        task.request(next(task.items()), P1)


# --- from the hub ------------------------------------------------------------------------------------------------


def test_a_data_set_of_the_hub_is_read_at_its_pinned_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    commit = "0123456789abcdef0123456789abcdef01234567"
    snapshot = tmp_path / "hub" / "datasets--hlt-cuhksz--EchoMind" / "snapshots" / commit
    write_source(snapshot, "synthesis", official(tmp_path / "made"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    found = list(Conversation(path=f"hub:hlt-cuhksz/EchoMind@{commit}").items())
    assert len(found) == 5
    missing = "f" * 40
    with pytest.raises(ValueError, match="not downloaded"):
        list(Conversation(path=f"hub:hlt-cuhksz/EchoMind@{missing}").items())


@pytest.mark.parametrize(
    "name", ["hub:hlt-cuhksz/EchoMind", "hub:hlt-cuhksz/EchoMind@main", "hub:EchoMind@" + "0" * 40]
)
def test_a_data_set_that_is_not_pinned_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="hub:owner/name@commit"):
        list(Transcription(path=name).items())
