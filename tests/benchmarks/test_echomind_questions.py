"""Multiple-choice questions of every plausible form; what is wrong with them is said all at once."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.echomind import Reasoning, Understanding
from benchmarks.echomind_questions import answer_key, parsed_options, right_letter
from farm.types import AudioSegment, Item, TextSegment
from tests.benchmarks.echomind_folders import official, question, script, write_questions, write_source

FOUR = {"A": "Happy voice", "B": "Sad voice", "C": "Angry voice", "D": "Calm voice"}
TEXT = "\n".join(f"{letter}. {option}" for letter, option in FOUR.items())


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    official(tmp_path / "EchoMind")
    return tmp_path / "EchoMind"


def items(root: Path, level: Any = Understanding, **settings: Any) -> list[Item]:
    return list(level(path=str(root), **settings).items())


def refusal(root: Path, **settings: Any) -> str:
    with pytest.raises(ValueError) as refused:
        items(root, **settings)
    return str(refused.value)


def test_a_question_is_about_one_recording_and_belongs_to_its_script(root: Path) -> None:
    first = items(root)[0]
    audio, text = first.stimulus.turns[0]
    assert isinstance(audio, AudioSegment) and audio.seconds == pytest.approx(0.5)
    assert isinstance(text, TextSegment) and text.role == "question"
    assert text.text.startswith(
        "\nQuestion: What is the most likely emotion of the speaker in the audio?\nOptions:\nA. The speaker's"
    )
    assert (first.key, first.unit, first.task) == ("synthesis/1", "id_854", "echomind.understanding")
    assert (first.gold["answer"], list(first.gold["options"])) == ("B", ["A", "B", "C", "D"])
    assert first.factors["question_type"] == "speech_emotion"
    assert (first.factors["attribute"], first.factors["voice_style"]) == ("sad", "target")


def test_questions_of_two_three_and_four_options_and_of_odd_file_names(root: Path) -> None:
    assert [len(item.gold["options"]) for item in items(root)] == [4, 3]
    reasoning = items(root, Reasoning)
    assert [item.unit for item in reasoning] == ["id_854", "id_355", "id_2471", "id_2500", "id_2600"]
    assert {item.factors["question_type"] for item in reasoning} == {"multiple_people_detection"}
    assert all(len(item.gold["options"]) == 2 for item in reasoning)


def test_only_questions_about_the_chosen_voices_and_sources_are_asked(root: Path) -> None:
    assert [item.key for item in items(root, voice=["alternative"])] == ["synthesis/2"]
    assert [item.key for item in items(root, source=["human"])] == ["human/1", "human/3"]
    both = items(root, source=["synthesis", "human"])
    assert {item.factors["voice_source"] for item in both} == {"synthetic", "human"}


@pytest.mark.parametrize(
    "answers",
    [
        {"answer": "B"},
        {"correct_answer": "b."},
        {"gold": "(B)"},
        {"ground_truth": "B. Sad voice"},
        {"label": "sad voice."},
        {"answer": ["B"]},
        {"target": "sad", "answer": "B"},
        {"label": "sad", "correct_option": "B"},
    ],
)
def test_right_answers_are_found_under_any_name_and_in_any_form(
    tmp_path: Path, answers: dict[str, Any]
) -> None:
    record = script("id_1", "sad-toned expressive voice", "sad")
    write_source(tmp_path, "synthesis", [record])
    asked = question(1, record, options=TEXT)
    del asked["answer"]
    write_questions(tmp_path, "synthesis", "understanding", [{**asked, **answers}])
    assert [item.gold["answer"] for item in items(tmp_path)] == ["B"]


def test_numbers_count_from_where_the_file_shows() -> None:
    records = [{"options_text": TEXT, "answer": n} for n in (0, 1, 3)]
    key = answer_key(records)
    assert key and [right_letter(r["answer"], FOUR, key.first) for r in records] == ["A", "B", "D"]
    records = [{"options_text": TEXT, "answer": n} for n in (1, "2", 4)]
    key = answer_key(records)
    assert key and [right_letter(r["answer"], FOUR, key.first) for r in records] == ["A", "B", "D"]


def test_every_answer_that_is_no_option_is_in_one_list(root: Path) -> None:
    record = official_script(root)
    wrong = [question(n, record, options=TEXT, answer=f"nothing {n}") for n in range(30)]
    wrong += [
        question(90, record, options=TEXT, answer="E"),
        question(91, record, options=TEXT, answer="B. Happy voice"),
    ]
    wrong += [question(92, record, options=TEXT, answer=None), question(93, record, options=TEXT, answer="C")]
    write_questions(root, "synthesis", "understanding", wrong)
    message = refusal(root)
    assert "33 problems" in message
    for number in (*range(30), 90, 91, 92):
        assert f"question {number}: right answer" in message
    assert "question 93" not in message


def test_all_else_that_is_wrong_is_in_the_same_list(root: Path) -> None:
    record = official_script(root)
    asked = question(1, record)
    wrong = [
        asked,
        asked,
        {**asked, "question_id": 2, "options_text": "yes or no"},
        {**asked, "question_id": 3, "audio_name": "nowhere.wav"},
        {"question_id": 4, "question": "?", "answer": "A"},
    ]
    write_questions(root, "synthesis", "understanding", wrong)
    message = refusal(root)
    for part in (
        "question 1 a second time",
        "question 2: options_text 'yes or no': no two options",
        "question 3: sad/nowhere.wav is no script's recording",
        "question 4: no options_text, audio_name",
    ):
        assert part in message


def test_a_file_without_right_answers_names_its_fields(root: Path) -> None:
    asked = question(1, official_script(root))
    del asked["answer"]
    write_questions(root, "synthesis", "understanding", [asked])
    assert "no right answers: none of answer, correct_answer" in refusal(root)
    assert "the fields are audio_dir, audio_name, options_text, question, question_id" in refusal(root)


def test_a_missing_or_broken_file_is_named(root: Path) -> None:
    file = root / "data_synthesis" / "MCQ" / "understanding.json"
    file.write_text("{", encoding="utf-8")
    assert "data_synthesis/MCQ/understanding.json: Expecting" in refusal(root)
    file.write_text('{"a": 1}', encoding="utf-8")
    assert "must be a list of questions" in refusal(root)
    file.unlink()
    assert "data_synthesis/MCQ/understanding.json" in refusal(root)


@pytest.mark.parametrize("place", ["sad", "audio/sad", "data_synthesis/audio/sad", "elsewhere", "", None])
def test_a_recording_is_found_by_folder_or_by_its_name_alone(root: Path, place: str | None) -> None:
    asked = question(1, official_script(root), audio_dir=place)
    write_questions(root, "synthesis", "understanding", [asked])
    assert [item.unit for item in items(root)] == ["id_854"]


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ({"question_type": "Audio-Text Sentiment Consistency"}, "audio_text_sentiment_consistency"),
        ({"question": "Eh?"}, "other"),
    ],
)
def test_the_type_is_the_datas_own_where_it_says_so(root: Path, field: dict[str, str], kind: str) -> None:
    write_questions(root, "synthesis", "understanding", [question(1, official_script(root), **field)])
    assert items(root)[0].factors["question_type"] == kind


@pytest.mark.parametrize(
    "text",
    [
        "A. Yes\nB. No",
        "A) Yes\nB) No",
        "(A) Yes (B) No",
        "A. Yes B. No",
        " A: Yes\n\n B: No\n",
        "A、Yes\nB、No",
    ],
)
def test_options_are_read_in_any_layout(text: str) -> None:
    assert parsed_options(text) == {"A": "Yes", "B": "No"}


def test_letters_inside_an_options_text_begin_no_option() -> None:
    assert parsed_options("A. Plan B. Now\nB. Vitamin C. Take it") == {
        "A": "Plan B. Now",
        "B": "Vitamin C. Take it",
    }


def official_script(root: Path) -> dict[str, Any]:
    return script("id_854", "sad-toned expressive voice", "sad")
