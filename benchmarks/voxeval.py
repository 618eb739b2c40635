"""VoxEval (arXiv 2501.04962): knowledge asked in speech and answered in speech, 56 subjects in 11 settings.

The questions are MMLU's, read out; a setting is a voice, or what the release did to a voice's audio. `voxeval.regular`
asks all subjects for the answer; `voxeval.math` asks the three of mathematics, directly or with chain of thought.

The data (CC BY 4.0) is the user's own download; data/voxeval_mini/, of the same layout, is part of this repository.

Invariant: a task reads the data, never writes it; an item's key, stimulus and request depend on the data alone. A
spoken prompt is named segment by segment and joined in the worker: no trial's audio is ever stored.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Self

import audio
from benchmarks.hub import data_folder
from benchmarks.voxeval_layout import (
    LETTERS,
    Example,
    Form,
    Question,
    Recording,
    cot_prompt,
    listed,
    read_examples,
    read_recordings,
    voice_of,
)
from benchmarks.voxeval_prompts import instruction, question_text
from benchmarks.voxeval_subjects import MATHEMATICS, SUBJECTS
from farm.types import (
    AudioSegment,
    Item,
    Joining,
    Prompt,
    Request,
    Segment,
    Stimulus,
    TextSegment,
    Wording,
)

SHOTS: Mapping[Form, int] = {"direct": 5, "cot": 3}
"""Examples before a spoken question, as published."""
PROBED_AT_ONCE = 1024
"""Recordings decoded ahead of the items asked for."""
OWN = (Prompt(name="own", strength="own"),)


class Regular:
    """`voxeval.regular`: a spoken question with four options; which is right?

    Arms: `shots`, examples before the question (`published`: 5, or 3 with chain of thought; none where the question
    is asked with an instruction); `asked`: `spoken` (speech alone, joined into one recording, as published),
    `instruction` (one text beside the spoken question, as published for GLM-4-Voice), `text` (the question as text
    too: what the speech costs is the difference).

    Args:
        path: the folder that holds `test/`, or `hub:qqjz/VoxEval@commit`.
        setting: folders of `test/`: `alloy`, `echo`, `alloy_noise` ...
        subject: `available` (every one that the folder has), `all` (56; a missing one is an error), or a list.
        keep_last_s: of a longer spoken prompt only the last so many seconds are heard; None keeps all of it.
        silence_s: between the pieces of a spoken prompt.

    Raises:
        ValueError: an unknown subject, a number below 0.
    """

    version = "1"
    name = "voxeval.regular"
    benchmark = "voxeval"
    prompts: tuple[Prompt, ...] = OWN
    arms: Mapping[str, tuple[str, ...]] = {
        "shots": ("published", "0", "1", "2", "3", "4", "5"),
        "asked": ("spoken", "instruction", "text"),
    }
    subjects: Sequence[str] = tuple(SUBJECTS)
    """Those that the task is about."""

    def __init__(
        self,
        *,
        path: str,
        setting: Sequence[str],
        subject: str | Sequence[str] = "available",
        keep_last_s: float | None = 80.0,
        silence_s: float = 1.0,
    ) -> None:
        if silence_s < 0 or (keep_last_s is not None and keep_last_s <= 0):
            raise ValueError(f"silence_s={silence_s}, keep_last_s={keep_last_s}: seconds, or null for no cut")
        self._given = path
        self._settings = [setting] if isinstance(setting, str) else list(dict.fromkeys(setting))
        self._subjects = _chosen(subject, self.subjects)
        self._joined = Joining(keep_last_s=keep_last_s)
        self._silence_s = silence_s
        self._arm: Mapping[str, str] = {}
        self._examples: dict[tuple[str, str], tuple[Segment, ...]] = {}

    def varied(self, arm: Mapping[str, str], wording: Wording) -> Self:
        """See `farm.types.VariedTask`.

        Raises:
            ValueError: examples that the arm needs are missing; the message lists all of them.
        """
        other = copy.copy(self)
        other._arm = arm
        other._examples = other._read_examples()
        return other

    @property
    def _form(self) -> Form:
        return "cot" if self._arm.get("form") == "cot" else "direct"

    @property
    def _asked(self) -> str:
        return self._arm.get("asked", "spoken")

    @property
    def _shots(self) -> int:
        shots = self._arm.get("shots", "published")
        if shots != "published":
            return int(shots)
        return SHOTS[self._form] if self._asked == "spoken" else 0

    def items(self) -> Iterator[Item]:
        """One item a question and setting, in the CSVs' order.

        Yields:
            Items whose `gold` has `answer` (the right letter), `options` (letter -> text), `question` (its text) and,
            where the data has it, `answer_speech` (the path of the right answer, spoken). A recording that cannot be
            decoded is an item of 0 seconds.

        Raises:
            ValueError: the data folder is wrong; the message lists all that is.
        """
        recordings = iter(self._recordings())
        while some := list(islice(recordings, PROBED_AT_ONCE)):
            for recording, segment in zip(some, _segments("question", [r.path for r in some]), strict=True):
                yield self._item(recording, segment)

    def _recordings(self) -> list[Recording]:
        subjects = self._subjects or self._available()
        return read_recordings(self._folder(), self._settings, subjects)

    def _available(self) -> list[str]:
        """Subjects of this task that the folder has; empty leaves it to the reader to say what is missing."""
        return [s for s in self.subjects if (self._folder() / "test" / f"{s}_4o.csv").is_file()]

    def _folder(self) -> Path:
        voices = {voice_of(setting) for setting in self._settings}
        examples = [
            f"{folder}/{v}/*" for folder in ("all_fewshot_examples", "math_CoT_fewshot") for v in voices
        ]
        return data_folder(self._given, ["test/*.csv", *(f"test/{s}/*" for s in self._settings), *examples])

    def _item(self, recording: Recording, segment: AudioSegment) -> Item:
        question = recording.question
        unit = f"{question.subject}/{question.number:08d}"
        spoken = {"answer_speech": recording.answer_path} if recording.answer_path else {}
        return Item(
            key=f"{recording.setting}/{unit}",
            benchmark=self.benchmark,
            task=self.name,
            unit=unit,
            pair_id=unit,
            stimulus=Stimulus(turns=((segment,),)),
            gold={**_gold(question), **spoken},
            factors=_factors(recording.setting, question.subject),
        )

    def template(self, prompt: Prompt) -> str:
        """The text instruction, where there is one, and how a spoken prompt is put together."""
        if self._asked != "spoken":
            return instruction(self._form)
        return f"{self._shots} examples, {self._silence_s:g} s apart"

    def request(self, item: Item, prompt: Prompt) -> Request:
        """The spoken prompt; or the question, spoken or as text, under the text instruction."""
        if self._asked == "text":
            text = question_text(item.gold["question"], [*item.gold["options"].values()])
            return Request(
                system=instruction(self._form), turns=((TextSegment(role="question", text=text),),)
            )
        (question,) = item.stimulus.turns
        examples = self._examples[item.factors["voice"], item.factors["subject"]]
        system = "" if self._asked == "spoken" else instruction(self._form)
        return Request(system=system, turns=((*examples, *question),), joined=self._joined)

    # --- examples -------------------------------------------------------------------------------------------------

    def _read_examples(self) -> dict[tuple[str, str], tuple[Segment, ...]]:
        """(voice, subject) -> everything that is heard before a question."""
        if self._asked == "text":
            if self._arm.get("shots", "0") != "0":
                raise ValueError(
                    "arms.asked=text has no examples: the data has their speech alone; shots=published"
                )
            return {}
        path = self._folder()
        subjects = self._subjects or self._available()
        voices = dict.fromkeys(map(voice_of, self._settings))
        problems: list[str] = []
        found = {}
        for voice, subject in ((v, s) for v in voices for s in subjects):
            try:
                examples = read_examples(path, voice, subject, self._form, self._shots) if self._shots else ()
                found[voice, subject] = self._before(examples, path, voice)
            except ValueError as error:
                problems.append(str(error))
        if problems:
            raise ValueError(listed(f"{self.name}: examples", problems))
        return found

    def _before(self, examples: Sequence[Example], path: Path, voice: str) -> tuple[Segment, ...]:
        silence = AudioSegment(role="silence", path="", sha256="", seconds=self._silence_s)
        pieces: list[Segment] = []
        for example in examples:
            (asked,) = _segments("example_question", [example.question])
            (answered,) = _segments("example_answer", [example.answer])
            pieces += [asked, silence, answered, silence]
        if self._form == "cot" and self._asked == "spoken" and (file := cot_prompt(path, voice)):
            pieces += [*_segments("instruction", [file]), silence]
        return tuple(pieces)


class Math(Regular):
    """`voxeval.math`: the subjects of mathematics; the arm `form` asks for the answer (`direct`) or the way (`cot`).

    With `cot` and spoken, a voice's `cot_prompt.mp3` ("Please explain your reasoning step by step.") stands before the
    question, where the data has one; the examples' answers show the reasoning in any case.
    """

    name = "voxeval.math"
    arms: Mapping[str, tuple[str, ...]] = {"form": ("direct", "cot"), **Regular.arms}
    subjects: Sequence[str] = MATHEMATICS


def _chosen(subject: str | Sequence[str], known: Sequence[str]) -> list[str]:
    """Subjects asked for; empty is `available`."""
    if subject == "available":
        return []
    if subject == "all":
        return list(known)
    chosen = [subject] if isinstance(subject, str) else list(dict.fromkeys(subject))
    unknown = [name for name in chosen if name not in SUBJECTS]
    of_task = [name for name in chosen if name in known]
    if unknown or not of_task:
        raise ValueError(f"subject={unknown or chosen}: available, all, or one or more of {', '.join(known)}")
    return of_task


def _segments(role: str, paths: Sequence[str]) -> list[AudioSegment]:
    return [
        AudioSegment(role=role, path=path, sha256=probe.sha256, seconds=probe.seconds)
        for path, probe in zip(paths, audio.probe_many(paths), strict=True)
    ]


@cache
def _factors(setting: str, subject: str) -> Mapping[str, str]:
    """Shared by all items of a setting and subject."""
    return {
        "setting": setting,
        "subject": subject,
        "group": SUBJECTS[subject],
        "voice": voice_of(setting),
    }


def _gold(question: Question) -> dict[str, Any]:
    return {
        "answer": question.answer,
        "options": dict(zip(LETTERS, question.options, strict=True)),
        "question": question.text,
    }
