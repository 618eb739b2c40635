"""VoxEval's data folder as released (qqjz/VoxEval on the Hugging Face hub): questions, recordings, examples.

    <path>/test/<subject>_4o.csv                                      no header: question, four options, right letter
    <path>/test/<setting>/<subject>_4o/%08d_question.mp3, _answer.mp3 the rows of the CSV, spoken
    <path>/all_fewshot_examples/<voice>/<subject>_4o/                 the same two files an example
    <path>/math_CoT_fewshot/<voice>/<subject>_dev_4o/                 ..._question.mp3, ..._CoT_answer.mp3

A setting is a voice (`alloy`), or what was done to a voice's audio (`alloy_noise`); a file's number is its row's, from
0 or from 1.

Invariant: a folder is right as a whole or an error that lists everything wrong with it; nothing is skipped silently.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from benchmarks.voxeval_subjects import SUBJECTS

Form = Literal["direct", "cot"]
LETTERS = "ABCD"
PROBLEMS_SHOWN = 20
"""Lines of an error; a folder half downloaded has thousands."""
COT_PROMPT = "cot_prompt.mp3"
"""Beside a voice's CoT examples: the spoken request to explain step by step. Not in the release; optional."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A row of a subject's CSV; all settings share it."""

    subject: str
    number: int
    """Of its row, from 0."""
    text: str
    options: tuple[str, ...]
    answer: str
    """One of A to D."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A question in one setting."""

    question: Question
    setting: str
    path: str
    answer_path: str
    """The right answer, spoken; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question and its answer, both spoken."""

    question: str
    answer: str


def voice_of(setting: str) -> str:
    """`alloy_noise` -> `alloy`: whose examples stand before the question."""
    return setting.split("_")[0]


def read_recordings(path: Path, settings: Sequence[str], subjects: Sequence[str]) -> list[Recording]:
    """The questions of a data folder in every chosen setting, subject by subject.

    Args:
        path: the folder.
        settings: names of folders in `test/`.
        subjects: of SUBJECTS; empty is every one that the folder has.

    Raises:
        ValueError: the folder has another layout, or anything in it is wrong; the message lists all of it.
    """
    there = sorted(p.name for p in (path / "test").glob("*") if p.is_dir())
    if absent := [setting for setting in settings if setting not in there]:
        raise ValueError(_layout_message(path, absent, there))
    chosen = subjects or [s for s in SUBJECTS if _csv(path, s).is_file()]
    if not chosen:
        raise ValueError(f"no VoxEval data in {path}: no test/<subject>_4o.csv of a known subject")
    problems: list[str] = []
    recordings: list[Recording] = []
    for subject in chosen:
        questions = list(_questions(path, subject, problems))
        for setting in settings:
            recordings += _recordings(path, setting, questions, problems) if questions else []
    if problems:
        raise ValueError(listed(f"VoxEval data in {path}", problems))
    return recordings


def listed(subject: str, problems: Sequence[str]) -> str:
    """Problems as one message."""
    shown = [f"  {problem}" for problem in problems[:PROBLEMS_SHOWN]]
    rest = len(problems) - len(shown)
    more = [f"  and {rest} more"] if rest else []
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    return "\n".join([f"{subject}: {count}", *shown, *more])


def _csv(path: Path, subject: str) -> Path:
    return path / "test" / f"{subject}_4o.csv"


def _layout_message(path: Path, absent: Sequence[str], there: Sequence[str]) -> str:
    if not there:
        return f"no VoxEval data in {path}: there is no test/<setting>/<subject>_4o/"
    return f"setting={list(absent)}: not in {path / 'test'}; there is {', '.join(there)}"


def _questions(path: Path, subject: str, problems: list[str]) -> Iterator[Question]:
    """One subject's questions; what is wrong with them is added to the problems."""
    file = _csv(path, subject)
    name = file.relative_to(path)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = list(csv.reader(lines, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problems.append(f"{name}: {'no such file' if isinstance(error, FileNotFoundError) else error}")
        return
    if not rows:
        problems.append(f"{name}: no questions")
    for number, row in enumerate(rows):
        wrong = _wrong(row)
        if wrong:
            problems.append(f"{name}: row {number + 1}: {wrong}")
        else:
            options = tuple(map(str.strip, row[1:5]))
            yield Question(
                subject=subject, number=number, text=row[0].strip(), options=options, answer=row[5].strip()
            )


def _wrong(row: Sequence[str]) -> str:
    """What is wrong with one row; a seventh column (a transcript, as the released runner adds) is not."""
    if len(row) < 6:
        return f"{len(row)} columns, not question, four options and the right letter"
    if row[5].strip() not in tuple(LETTERS):
        return f"right letter {row[5]!r}: one of {', '.join(LETTERS)}"
    empty = [name for name, cell in zip(("question", *LETTERS), row, strict=False) if not cell.strip()]
    return f"no text of {', '.join(empty)}" if empty else ""


def _recordings(
    path: Path, setting: str, questions: Sequence[Question], problems: list[str]
) -> Iterator[Recording]:
    folder = path / "test" / setting / f"{questions[0].subject}_4o"
    found = _numbered(str(folder), "question")
    answers = _numbered(str(folder), "answer")
    where = folder.relative_to(path)
    if not found:
        problems.append(f"{where}: no %08d_question.mp3")
        return
    first = min(found) if min(found) in (0, 1) else 0
    # The last row's number, not how many were read: rows with problems keep their number.
    if extra := [n for n in found if n - first > questions[-1].number and not problems]:
        problems.append(f"{where}: {len(extra)} recordings beyond the CSV's rows, from {min(extra):08d}")
    for question in questions:
        recording = found.get(question.number + first)
        if recording is None:
            problems.append(f"{where}/{question.number + first:08d}_question.mp3: no such file")
        else:
            answer = answers.get(question.number + first, "")
            yield Recording(question=question, setting=setting, path=recording, answer_path=answer)


def _numbered(folder: str, kind: str) -> dict[int, str]:
    """Number -> file `%08d_<kind>.mp3` of a folder; empty where there is no folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    matches = (re.fullmatch(rf"(\d+)_{kind}\.mp3", name) for name in names)
    return {int(match[1]): f"{folder}/{match[0]}" for match in matches if match}


# --- examples -----------------------------------------------------------------------------------------------------


def read_examples(path: Path, voice: str, subject: str, form: Form, count: int) -> tuple[Example, ...]:
    """The first examples of a subject in a voice, in their order.

    Raises:
        ValueError: there are fewer.
    """
    folder, kind = _examples_folder(path, voice, subject, form)
    questions, answers = _numbered(str(folder), "question"), _numbered(str(folder), kind)
    numbers = sorted(questions.keys() & answers.keys())
    if len(numbers) < count:
        raise ValueError(
            f"{folder}: {len(numbers)} examples (%08d_question.mp3, %08d_{kind}.mp3), not {count}"
        )
    return tuple(Example(questions[n], answers[n]) for n in numbers[:count])


def _examples_folder(path: Path, voice: str, subject: str, form: Form) -> tuple[Path, str]:
    if form == "cot":
        return path / "math_CoT_fewshot" / voice / f"{subject}_dev_4o", "CoT_answer"
    return path / "all_fewshot_examples" / voice / f"{subject}_4o", "answer"


@cache
def cot_prompt(path: Path, voice: str) -> str:
    """The recorded request for reasoning in a voice; empty where there is none."""
    file = path / "math_CoT_fewshot" / voice / COT_PROMPT
    return str(file) if file.is_file() else ""
