"""EchoMind's multiple-choice questions as released: data_<source>/MCQ/understanding.json and reasoning.json.

    {"question_id": ..., "question": ..., "options_text": "A. ... B. ...", "audio_dir": ..., "audio_name": ...}

and the right answer, under a name that the released code does not show: `ANSWER_FIELDS` are tried, and a letter, a
letter with its text, an option's text or a number are all understood.

Invariant: a question has two options or more and a right answer among them, or it is in the one list of all that is
wrong with the file, before anything runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from benchmarks.echomind_scripts import Script, Source, Voice, listed

Level = Literal["understanding", "reasoning"]
ANSWER_FIELDS = (
    "answer", "correct_answer", "gold_answer", "gold", "ground_truth", "correct_option", "correct_choice",
    "right_answer", "answer_letter", "answer_label", "answer_key", "answer_text", "label", "correct", "gt", "target",
    "reference", "reference_answer", "answer_idx", "answer_index", "correct_index", "solution",
)  # fmt: skip
TYPE_FIELDS = ("question_type", "task_type", "mcq_type", "type", "category", "question_category", "task")
_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "which of the following best describes this audio": "coarse_grained",
        "what is the most likely gender of the speaker in the audio": "gender",
        "what is the most likely age group of the speaker in the audio": "age_group",
        "which of the following best describes the voice in this audio": "voice_style",
        "what is the most likely emotion of the speaker in the audio": "speech_emotion",
        "which of the following best describes the speaking pace in this audio": "speaking_pace",
        "what is the most likely non-verbal expression that the speaker made during the audio": "non_verbal_expression",
        "what is the most likely non-verbal expression the speaker made during the audio": "non_verbal_expression",
        "which of the following best describes the background sound in this audio": "background_sound",
        "does the audio contain sounds from multiple people": "multiple_people_detection",
        "does the user laugh heartily": "laughter_sentiment",
        "does the user sound an angry shout": "shouting_sentiment",
        "is the sentiment expressed in the spoken text consistent with the emotional tone of the speaker's voice":
            "audio_text_consistency",
        "what kind of response does the speaker need": "response_style",
        "based on the speaker's current situation, which of the following suggestions would be most appropriate":
            "contextual_suggestion",
        "based on the speaker's voice and the content of their speech, in which of the following scenarios is the "
        "speaker most likely to be": "preceding_event",
        "what is the speaker's primary intention in saying this": "speaker_intent",
        "which response shows the most empathy and emotional intelligence in this moment": "empathetic_response",
    }
)  # fmt: skip
"""The questions on the paper's project page -> their types: 8 of voice understanding, 9 of integrated reasoning; the
tenth, personalised recommendation, asks something else each time (Table 13)."""
OTHER: Mapping[Level, str] = MappingProxyType(
    {"understanding": "other", "reasoning": "personalised_recommendation"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question about one recording."""

    key: str
    """Its id, unique within its source and level."""
    script: Script
    voice: Voice
    type: str
    """`speech_emotion`, `speaker_intent` ..."""
    question: str
    options_text: str
    """As the model reads it."""
    options: Mapping[str, str]
    """Letter -> text."""
    answer: str
    """The right letter."""
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """Where a file's right answers are, and the number of the first option where they are numbers."""

    field: str
    first: int | None


def read_questions(
    path: Path, level: Level, scripts: Sequence[Script], voices: Sequence[Voice]
) -> list[Question]:
    """The questions about the recordings of some voices, in the data's order, source by source.

    Args:
        path: the data folder.
        level: which of the two files.
        scripts: what `read_scripts` gave: their sources are read.
        voices: questions about other voices are left out.

    Raises:
        ValueError: a file is missing, or anything in it is wrong; the message lists all of it.
    """
    problems: list[str] = []
    found: list[Question] = []
    for source in dict.fromkeys(script.source for script in scripts):
        own = [script for script in scripts if script.source == source]
        found += _of_file(path, source, level, own, problems)
    if problems:
        raise ValueError(listed(f"EchoMind {level} questions in {path}", problems, most=len(problems)))
    return [question for question in found if question.voice in voices]


def _of_file(
    path: Path, source: Source, level: Level, scripts: Sequence[Script], problems: list[str]
) -> Iterator[Question]:
    file = path / f"data_{source}" / "MCQ" / f"{level}.json"
    name = file.relative_to(path)
    try:
        records = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problems.append(f"{name}: {error}")
        return
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        problems.append(f"{name}: must be a list of questions")
        return
    key = answer_key(records)
    if key is None:
        fields = ", ".join(sorted({field for record in records for field in record}))
        problems.append(
            f"{name}: no right answers: none of {', '.join(ANSWER_FIELDS)}; the fields are {fields}"
        )
        return
    yield from _questions(records, level, _recordings(scripts), key, str(name), problems)


def _questions(
    records: Sequence[Mapping[str, Any]],
    level: Level,
    recordings: Mapping[str, tuple[Script, Voice]],
    key: AnswerKey,
    name: str,
    problems: list[str],
) -> Iterator[Question]:
    seen: set[str] = set()
    for number, record in enumerate(records, start=1):
        try:
            question = _question(record, level, recordings, key)
        except ValueError as error:
            problems.append(f"{name}: question {record.get('question_id', f'number {number}')}: {error}")
            continue
        if question.key in seen:
            problems.append(f"{name}: question {question.key} a second time")
        seen.add(question.key)
        yield question


def _question(
    record: Mapping[str, Any], level: Level, recordings: Mapping[str, tuple[Script, Voice]], key: AnswerKey
) -> Question:
    lacking = [
        name for name in ("question", "options_text", "audio_name") if not isinstance(record.get(name), str)
    ]
    if "question_id" not in record or lacking:
        raise ValueError(
            f"no {', '.join([*lacking, *(['question_id'] if 'question_id' not in record else [])])}"
        )
    options = parsed_options(record["options_text"])
    if len(options) < 2:
        raise ValueError(f"options_text {record['options_text']!r}: no two options A., B. ...")
    script, voice = _recording(record, recordings)
    return Question(
        key=str(record["question_id"]),
        script=script,
        voice=voice,
        type=_type(record, level),
        question=record["question"],
        options_text=record["options_text"],
        options=options,
        answer=right_letter(record.get(key.field), options, key.first),
        record=record,
    )


def _recordings(scripts: Sequence[Script]) -> dict[str, tuple[Script, Voice]]:
    """Where each recording lies under audio/, and its file name alone where that is unique."""
    voices: tuple[Voice, ...] = ("target", "alternative", "neutral")
    found: dict[str, tuple[Script, Voice]] = {}
    names: dict[str, list[tuple[Script, Voice]]] = {}
    for script in scripts:
        for voice in filter(script.has, voices):
            if recording := script.recording(voice):
                found[recording.relative_to(script.folder / "audio").as_posix()] = script, voice
                names.setdefault(recording.name, []).append((script, voice))
    return {name: places[0] for name, places in names.items() if len(places) == 1} | found


def _recording(
    record: Mapping[str, Any], recordings: Mapping[str, tuple[Script, Voice]]
) -> tuple[Script, Voice]:
    name = record["audio_name"]
    place = f"{record.get('audio_dir') or ''}/{name}".strip("/")
    for key in (place, place.partition("audio/")[2], name):
        if key in recordings:
            return recordings[key]
    raise ValueError(f"{place} is no script's recording")


def _type(record: Mapping[str, Any], level: Level) -> str:
    for name in TYPE_FIELDS:
        if isinstance(value := record.get(name), str) and value.strip():
            return re.sub(r"[^a-z0-9]+", "_", value.casefold()).strip("_")
    text = " ".join(record["question"].casefold().replace("’", "'").split()).rstrip("?.: ")
    return _TYPES.get(text, OTHER[level])


# --- options and right answers -----------------------------------------------------------------------------------


def parsed_options(text: str) -> dict[str, str]:
    """Letter and text of each option, one a line or one after the other; the letters run from A without a gap."""
    by_line, in_line = (_option_starts(text, before) for before in (r"^[ \t]*", r"(?:^|(?<=\s))"))
    starts = by_line if len(by_line) > 1 else in_line
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return {match[1]: text[match.end() : end].strip() for match, end in zip(starts, ends, strict=False)}


def _option_starts(text: str, before: str) -> list[re.Match[str]]:
    starts: list[re.Match[str]] = []
    for match in re.finditer(before + r"[(\[]?([A-Z])[)\].:、][ \t]*", text, re.MULTILINE):
        if match[1] == chr(ord("A") + len(starts)):
            starts.append(match)
    return starts


def answer_key(records: Sequence[Mapping[str, Any]]) -> AnswerKey | None:
    """Which field of a file holds the right answers: the one that most often names an option; None where none is there.

    Numbered answers begin at 0 where a 0 is among them, at 1 where one equals its number of options; else unknown.
    """
    there = [name for name in ANSWER_FIELDS if any(record.get(name) is not None for record in records)]
    keys = [AnswerKey(name, _counted_from(records, name)) for name in there]
    options = [parsed_options(str(record.get("options_text", ""))) for record in records]
    named = [sum(_names(record, o, key) for record, o in zip(records, options, strict=True)) for key in keys]
    return keys[named.index(max(named))] if keys else None


def _names(record: Mapping[str, Any], options: Mapping[str, str], key: AnswerKey) -> bool:
    try:
        right_letter(record.get(key.field), options, key.first)
    except ValueError:
        return False
    return True


def _counted_from(records: Sequence[Mapping[str, Any]], field: str) -> int | None:
    numbers = [(int(text), r) for r in records if (text := str(r.get(field)).strip()).isdecimal()]
    if any(number == 0 for number, _ in numbers):
        return 0
    ends = (number == len(parsed_options(str(record.get("options_text", "")))) for number, record in numbers)
    return 1 if any(ends) else None


def right_letter(answer: Any, options: Mapping[str, str], first: int | None) -> str:
    """The letter that a gold answer means.

    Args:
        answer: a letter, `B. text`, an option's text, or a number.
        options: letter -> text.
        first: the number of the first option, None where it is not known.

    Raises:
        ValueError: it is not among the options.
    """
    value = answer[0] if isinstance(answer, list) and len(answer) == 1 else answer
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    letter = _letter(text, options) or _by_text(text, options) or _by_number(text, options, first)
    if letter is None:
        raise ValueError(f"right answer {answer!r} is not among its options {', '.join(options)}")
    return letter


def _letter(text: str, options: Mapping[str, str]) -> str | None:
    """`B`, `(B)`, `b.`, or `B. text` where the text is that option's."""
    match = re.fullmatch(r"[(\[]?([A-Za-z])[)\]]?[.:、]?(?:\s+(.*))?", text, re.DOTALL)
    if not match or match[1].upper() not in options:
        return None
    letter = match[1].upper()
    return letter if match[2] is None or _same(match[2], options[letter]) else None


def _by_text(text: str, options: Mapping[str, str]) -> str | None:
    found = [letter for letter, option in options.items() if text and _same(text, option)]
    return found[0] if len(found) == 1 else None


def _by_number(text: str, options: Mapping[str, str], first: int | None) -> str | None:
    if first is None or not text.isdecimal():
        return None
    at = int(text) - first
    return [*options][at] if 0 <= at < len(options) else None


def _same(one: str, other: str) -> bool:
    plain = [" ".join(text.casefold().split()).rstrip(".") for text in (one, other)]
    return plain[0] == plain[1]
