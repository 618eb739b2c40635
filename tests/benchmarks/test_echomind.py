"""Folders in the official layout, as the real one has them: odd names, odd rates, headers that lie, files that lack."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.echomind import Conversation
from farm import ids
from farm.types import AudioSegment, Item, Prompt
from tests.benchmarks.echomind_folders import script, tone, write_audio, write_index, write_source

SCRIPTS = [
    script("id_854", "sad-toned expressive voice", "sad", speak_A="I got my exam back."),
    script("id_355", "elderly", "elderly", "family"),
    script("id_2500", "sound of crowd's chatter", "sound of crowd's chatter", "no_specific_topics"),
    script("id_2600", "sound of dog(s) barking", "sound of dog(s) barking", "no_specific_topics"),
]
VOICES = ("target", "alternative", "neutral")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "Echo Mind (copy)"
    write_source(folder, "synthesis", SCRIPTS)
    return folder


def items(root: Path, **settings: Any) -> list[Item]:
    return list(Conversation(path=str(root), **settings).items())


def question(item: Item) -> AudioSegment:
    ((segment,),) = item.stimulus.turns
    assert isinstance(segment, AudioSegment)
    return segment


def refusal(root: Path, **settings: Any) -> str:
    with pytest.raises(ValueError) as refused:
        items(root, **settings)
    return str(refused.value)


def test_an_item_is_one_recording_of_a_script(root: Path) -> None:
    first = items(root)[0]
    assert first.key == "synthesis/id_854/target"
    assert (first.benchmark, first.task) == ("echomind", "echomind.conversation")
    assert first.factors == {
        "voice_style": "target",
        "voice_source": "synthetic",
        "attribute": "sad",
        "fine_dimension": "emotion",
        "coarse_dimension": "paralinguistic",
        "topic": "school",
    }
    assert question(first).role == "question"
    assert question(first).seconds == pytest.approx(0.5)
    assert len(question(first).sha256) == 64


def test_voices_of_one_script_are_one_unit_and_neutral_speakers_do_not_exist(root: Path) -> None:
    keys = [item.key for item in items(root, voice=["neutral", "target", "alternative"])]
    assert keys == [
        f"synthesis/{record['case_id']}/{voice}"
        for record in SCRIPTS
        for voice in VOICES
        if (record["case_id"], voice) != ("id_355", "neutral")
    ]
    assert {item.unit for item in items(root, voice=VOICES)} == {record["case_id"] for record in SCRIPTS}


def test_spaces_apostrophes_and_parentheses_are_names_like_others(root: Path) -> None:
    paths = [Path(question(item).path) for item in items(root)]
    assert [path.name for path in paths[2:]] == [
        "id_2500_sound of crowd's chatter_no_specific_topics_target.wav",
        "id_2600_sound of dog(s) barking_no_specific_topics_target.wav",
    ]
    assert all(path.is_file() for path in paths)


@pytest.mark.parametrize(
    "audio",
    [
        {"streamed": True},
        {"rate_hz": 44_100, "channels": 2},
        {"rate_hz": 48_000, "channels": 2, "streamed": True},
        {"rate_hz": 48_000},
    ],
)
def test_lengths_are_true_whatever_the_header_says(root: Path, audio: dict[str, Any]) -> None:
    file = SCRIPTS[0]["target_audio_info"]["target_input_audio_file"]
    write_audio(root, "synthesis", file, tone(1.25, **audio))
    assert question(items(root)[0]).seconds == pytest.approx(1.25)


def test_a_file_that_is_no_audio_stays_an_item(root: Path) -> None:
    write_audio(root, "synthesis", SCRIPTS[0]["target_audio_info"]["target_input_audio_file"], b"not audio")
    assert question(items(root)[0]).seconds == 0.0
    assert len(items(root)) == len(SCRIPTS)


def test_people_and_synthesis_share_scripts_and_differ_in_key_and_factor(root: Path) -> None:
    write_source(root, "human", SCRIPTS[:1])
    assert [item.key for item in items(root, source=["human"])] == ["human/id_854/target"]
    both = [item for item in items(root, source=["synthesis", "human"]) if item.unit == "id_854"]
    assert [item.key for item in both] == ["synthesis/id_854/target", "human/id_854/target"]
    assert [item.factors["voice_source"] for item in both] == ["synthetic", "human"]


def test_gold_keeps_every_field_of_the_data(root: Path) -> None:
    record = {**SCRIPTS[0], "voice_profile": {"tone": "soft"}}
    record["target_audio_info"] = {
        **record["target_audio_info"],
        "target_responses": ["I am sorry.", "Oh no."],
    }
    write_index(root, "synthesis", [record, *SCRIPTS[1:]])
    first, second, *_ = items(root)
    assert first.gold["record"] == record
    assert first.gold["spoken_info"] == "sad-toned expressive voice"
    assert first.gold["transcript"] == "I got my exam back."
    assert first.gold["references"] == ["I am sorry.", "Oh no."]
    assert "references" not in second.gold and "transcript" not in second.gold


def test_a_number_is_a_case_id_too(root: Path) -> None:
    write_source(root, "synthesis", [script(854, "shout", "shout")])
    assert [item.key for item in items(root)] == ["synthesis/854/target"]


def test_the_first_items_come_without_decoding_the_rest(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.echomind.PROBED_AT_ONCE", 2)
    found = Conversation(path=str(root)).items()
    assert [next(found).key, next(found).key] == ["synthesis/id_854/target", "synthesis/id_355/target"]
    for record in SCRIPTS[2:]:
        write_audio(root, "synthesis", record["target_audio_info"]["target_input_audio_file"], tone(2.0))
    later = list(found)
    assert [item.key for item in later] == ["synthesis/id_2500/target", "synthesis/id_2600/target"]
    assert [item.seconds for item in later] == [2.0, 2.0]


def test_every_missing_recording_is_in_one_message(root: Path) -> None:
    gone = [SCRIPTS[0]["target_audio_info"]["target_input_audio_file"]]
    gone += [SCRIPTS[3]["alternative_audio_info"]["alternative_input_audio_file"]]
    for file in gone:
        (root / "data_synthesis" / "audio" / file).unlink()
    message = refusal(root, voice=VOICES)
    assert "2 problems" in message
    for file in gone:
        assert f"data_synthesis/audio/{file}: no such file" in message


def test_recordings_of_voices_not_asked_for_may_be_missing(root: Path) -> None:
    (
        root / "data_synthesis" / "audio" / SCRIPTS[0]["neutral_audio_info"]["neutral_input_audio_file"]
    ).unlink()
    assert len(items(root, voice=["target"])) == len(SCRIPTS)


def test_a_long_list_is_cut_and_counted(tmp_path: Path) -> None:
    write_index(tmp_path, "synthesis", [script(f"id_{n}", "shout", "shout") for n in range(50)])
    message = refusal(tmp_path)
    assert message.count("no such file") == 20
    assert "50 problems" in message and "and 30 more" in message


def test_all_that_is_wrong_with_the_scripts_is_in_one_message(root: Path) -> None:
    unnamed = script("id_7", "shout", "shout")
    del unnamed["target_audio_info"]
    bad = [
        script("id_5", "purple voice", "purple"),
        {"case_id": "id_6"},
        unnamed,
        SCRIPTS[0],
        "text",
        script("id_8", "shout", "shout", topic=["a"]),  # type: ignore[arg-type]
    ]
    write_index(root, "synthesis", [*SCRIPTS, *bad])
    message = refusal(root)
    for part in (
        "unknown spoken_info 'purple voice' (id_5, 1 in all); valid: male; female;",
        "script 6: no topic, spoken_info",
        "id_7: names no recording of the target voice",
        "script 8: case_id id_854 a second time",
        "script 9: must be an object",
        "script 10: no topic, or not text",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("content", "reason"), [("{", "Expecting"), ('{"a": 1}', "must be a list"), ("\ud800", "utf-8")]
)
def test_an_index_that_cannot_be_read_is_named(root: Path, content: str, reason: str) -> None:
    index = root / "data_synthesis" / "script_info_synthesis.json"
    index.write_bytes(content.encode("utf-8", "surrogatepass"))
    message = refusal(root)
    assert "data_synthesis/script_info_synthesis.json" in message and reason in message


def test_a_wrong_folder_says_what_it_should_hold(tmp_path: Path, root: Path) -> None:
    assert f"{tmp_path}/data_synthesis/script_info_synthesis.json" in refusal(tmp_path)
    assert "audio/<attribute>/<file>.wav" in refusal(tmp_path / "no" / "such")
    assert f"did you mean {root}?" in refusal(root / "data_synthesis")
    assert refusal(root, source=["human"]).endswith("the source there is synthesis")


def test_the_folder_above_dataset_is_pointed_down(tmp_path: Path) -> None:
    write_source(tmp_path / "dataset", "synthesis", SCRIPTS)
    assert f"did you mean {tmp_path / 'dataset'}?" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"voice": ["loud"]}, "voice=.*target, alternative, neutral"),
        ({"voice": []}, "voice=.*target, alternative, neutral"),
        ({"source": ["robot"]}, "source=.*synthesis, human"),
        ({"prompt_set": "mine"}, "prompt_set=mine: one of echomind_code, echomind_paper"),
    ],
)
def test_a_wrong_setting_names_the_valid_ones(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Conversation(path="nowhere", **setting)


def test_a_requests_digest_depends_on_bytes_and_texts_not_on_places_or_gold(
    root: Path, tmp_path: Path
) -> None:
    def digests(folder: Path, strength: Any = "enhanced") -> list[bytes]:
        task = Conversation(path=str(folder))
        prompt = Prompt(name="p", strength=strength)
        return [ids.request_digest(task.request(item, prompt)) for item in task.items()]

    before = digests(root)
    moved = root.rename(tmp_path / "elsewhere")
    write_index(moved, "synthesis", [{**record, "relabelled": True} for record in SCRIPTS])
    assert digests(moved) == before
    assert len({*before, *digests(moved, "basic"), *digests(moved, "zero")}) == 3 * len(before)
    write_audio(moved, "synthesis", SCRIPTS[0]["target_audio_info"]["target_input_audio_file"], tone(0.7))
    assert [a == b for a, b in zip(digests(moved), before, strict=True)] == [False, True, True, True]
