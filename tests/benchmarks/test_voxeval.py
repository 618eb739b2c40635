"""VoxEval from a folder in the released layout: items, spoken prompts, arms, and everything wrong at once."""

from collections import Counter
from pathlib import Path

import pytest

import audio
from benchmarks.voxeval import Math, Regular
from benchmarks.voxeval_prompts import INSTRUCTION
from benchmarks.voxeval_subjects import MATHEMATICS, SUBJECTS
from farm import ids
from farm.types import AudioSegment, Condition, Item, Prompt, Request, TextSegment, Waveform, Wording
from tests.benchmarks.voxeval_folders import released, rows, write_csv

OWN = Prompt(name="own", strength="own")
CLEAN = Condition(name="clean", chain=())
MINI = Path(__file__).parents[2] / "data" / "voxeval_mini"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return released(tmp_path / "VoxEval")


def asked(task: Regular, item: Item | None = None, **arm: str) -> Request:
    item = item or next(iter(task.items()))
    return task.varied(arm, Wording()).request(item, OWN)


def roles(request: Request) -> list[str]:
    return [segment.role for segment in request.turns[0]]


def test_56_subjects_in_four_groups() -> None:
    assert Counter(SUBJECTS.values()) == {"STEM": 17, "humanities": 13, "social sciences": 12, "other": 14}
    assert "high_school_computer_science" not in SUBJECTS
    assert set(MATHEMATICS) < set(SUBJECTS)


def test_one_item_a_question_and_setting(root: Path) -> None:
    items = list(Regular(path=str(root), setting=["alloy", "alloy_noise", "echo"]).items())
    assert len(items) == 2 * 3 * 3 == len({item.key for item in items})
    assert len({item.unit for item in items}) == 6
    noisy = next(item for item in items if item.key == "alloy_noise/virology/00000001")
    assert noisy.unit == noisy.pair_id == "virology/00000001"
    assert noisy.factors == {
        "setting": "alloy_noise",
        "subject": "virology",
        "group": "other",
        "voice": "alloy",
    }
    assert noisy.gold["answer"] == "B"
    assert noisy.gold["options"] == {"A": "one", "B": "two", "C": "three", "D": "four"}
    assert noisy.gold["question"] == rows("virology")[1][0]
    assert noisy.gold["answer_speech"].endswith("test/alloy_noise/virology_4o/00000001_answer.mp3")
    assert noisy.seconds == pytest.approx(0.61)


def test_five_spoken_examples_stand_before_the_question_a_second_apart(root: Path) -> None:
    request = asked(Regular(path=str(root), setting=["echo"]))
    example = ["example_question", "silence", "example_answer", "silence"]
    assert roles(request) == [*example * 5, "question"]
    assert request.system == "" and request.joined is not None and request.joined.keep_last_s == 80
    assert all("/echo/" in s.path for s in request.turns[0] if isinstance(s, AudioSegment) and s.path)
    heard, _ = audio.hear(request, CLEAN, 1)
    (whole,) = heard.turns[0]
    assert isinstance(whole, AudioSegment) and whole.waveform
    question = request.turns[0][-1]
    assert isinstance(question, AudioSegment)
    assert whole.waveform.seconds == pytest.approx(5 * (0.5 + 0.3 + 2) + question.seconds)


def test_the_settings_voice_gives_the_examples(root: Path) -> None:
    request = asked(Regular(path=str(root), setting=["alloy_noise"]))
    paths = [s.path for s in request.turns[0] if isinstance(s, AudioSegment) and s.path]
    assert all("all_fewshot_examples/alloy/" in path for path in paths[:-1])


@pytest.mark.parametrize("shots", range(6))
def test_shots_are_an_arm(root: Path, shots: int) -> None:
    request = asked(Regular(path=str(root), setting=["alloy"]), shots=str(shots))
    assert roles(request).count("example_question") == shots


def test_chain_of_thought_has_three_examples_that_reason_and_is_asked_of_mathematics(root: Path) -> None:
    task = Math(path=str(root), setting=["alloy"])
    assert {item.factors["subject"] for item in task.items()} == {"elementary_mathematics"}
    request = asked(task, form="cot")
    paths = [s.path for s in request.turns[0] if isinstance(s, AudioSegment) and s.path]
    assert [Path(p).name for p in paths[:2]] == ["00000000_question.mp3", "00000000_CoT_answer.mp3"]
    assert roles(request).count("example_answer") == 3
    assert roles(asked(task)).count("example_answer") == 5
    assert "form" not in Regular.arms


def test_an_instruction_stands_beside_the_spoken_question(root: Path) -> None:
    request = asked(Regular(path=str(root), setting=["alloy"]), asked="instruction")
    assert request.system == INSTRUCTION and roles(request) == ["question"]
    assert isinstance(request.turns[0][0], AudioSegment)


def test_the_text_floor_has_no_audio(root: Path) -> None:
    request = asked(Regular(path=str(root), setting=["alloy"]), asked="text")
    (segment,) = request.turns[0]
    assert isinstance(segment, TextSegment)
    assert "Question 0 of virology" in segment.text or "elementary_mathematics" in segment.text
    assert segment.text.endswith("Option A: one. Option B: two. Option C: three. Option D: four.")


def test_arms_and_the_cut_make_other_trials(root: Path) -> None:
    task = Regular(path=str(root), setting=["alloy"])
    uncut = Regular(path=str(root), setting=["alloy"], keep_last_s=None)
    digests = {
        ids.request_digest(request)
        for request in (asked(task), asked(task, shots="0"), asked(task, asked="instruction"), asked(uncut))
    }
    assert len(digests) == 4


def test_files_may_be_numbered_from_one(tmp_path: Path) -> None:
    root = released(tmp_path / "one", first=1)
    item = next(iter(Regular(path=str(root), setting=["alloy"]).items()))
    (segment,) = item.stimulus.turns[0]
    assert isinstance(segment, AudioSegment)
    assert item.unit.endswith("00000000") and segment.path.endswith("00000001_question.mp3")


def test_everything_wrong_is_listed_at_once(root: Path) -> None:
    bad = [["Only a question?"], ["q", "1", "2", "3", "4", "E"], ["q", "1", "", "3", "4", "A"]]
    write_csv(root, "virology", [*bad, *rows("virology")])
    (root / "test" / "echo" / "elementary_mathematics_4o" / "00000001_question.mp3").unlink()
    with pytest.raises(ValueError) as error:
        list(Regular(path=str(root), setting=["alloy", "echo"]).items())
    said = str(error.value)
    assert "row 1: 1 columns" in said and "right letter 'E'" in said and "no text of B" in said
    assert "elementary_mathematics_4o/00000001_question.mp3: no such file" in said
    assert "virology_4o/00000003_question.mp3: no such file" in said


def test_missing_examples_are_listed_for_every_voice_and_subject(root: Path) -> None:
    for voice in ("alloy", "echo"):
        (root / "all_fewshot_examples" / voice / "virology_4o" / "00000004_answer.mp3").unlink()
    with pytest.raises(ValueError, match=r"2 problems[^$]*alloy/virology_4o: 4 examples[^$]*not 5"):
        Regular(path=str(root), setting=["alloy", "echo"]).varied({}, Wording())
    Regular(path=str(root), setting=["alloy", "echo"]).varied({"shots": "4"}, Wording())


def test_what_a_user_gets_wrong_is_answered_with_what_there_is(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is alloy, alloy_noise, echo"):
        list(Regular(path=str(root), setting=["shimmer"]).items())
    with pytest.raises(ValueError, match="no VoxEval data"):
        list(Regular(path=str(tmp_path / "nothing"), setting=["alloy"]).items())
    with pytest.raises(ValueError, match=r"'virologie'.*virology"):
        Regular(path=str(root), setting=["alloy"], subject=["virologie"])
    with pytest.raises(ValueError, match=r"astronomy_4o\.csv: no such file"):
        list(Regular(path=str(root), setting=["alloy"], subject="all").items())
    with pytest.raises(ValueError, match="examples"):
        Regular(path=str(root), setting=["alloy"]).varied({"asked": "text", "shots": "3"}, Wording())


def test_a_recording_that_cannot_be_decoded_stays_an_item(root: Path) -> None:
    (root / "test" / "alloy" / "virology_4o" / "00000001_question.mp3").write_bytes(b"not audio" * 50)
    items = {item.key: item for item in Regular(path=str(root), setting=["alloy"]).items()}
    assert len(items) == 6 and items["alloy/virology/00000001"].seconds == 0


# --- the set that ships -------------------------------------------------------------------------------------------


def test_the_small_set_has_four_subjects_of_six() -> None:
    items = list(Regular(path=str(MINI), setting=["joe"]).items())
    assert Counter((item.factors["voice"], item.factors["group"]) for item in items) == {
        (voice, group): 6
        for voice in ("joe",)
        for group in ("STEM", "humanities", "social sciences", "other")
    }
    assert all(2 < item.seconds < 30 for item in items)
    letters = Counter(item.gold["answer"] for item in items)
    assert max(letters.values()) - min(letters.values()) <= 4
    assert sum(p.stat().st_size for p in MINI.rglob("*") if p.is_file()) < 5_000_000


def test_the_small_set_can_be_asked_in_every_way() -> None:
    math = Math(path=str(MINI), setting=["joe"])
    cot = asked(math, form="cot")
    assert roles(cot)[-3:] == ["instruction", "silence", "question"]
    assert {s.sample_rate_hz for s in _waveforms(cot)} == {22_050}
    assert roles(asked(math, shots="5")).count("example_question") == 5


def _waveforms(request: Request) -> list[Waveform]:
    return [audio.load(s.path) for s in request.turns[0] if isinstance(s, AudioSegment) and s.path]
