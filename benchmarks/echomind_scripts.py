"""EchoMind's data folder as released: its scripts, and where each one's recordings lie.

    <path>/data_synthesis/script_info_synthesis.json     a list of scripts
    <path>/data_synthesis/audio/<attribute>/<file>.wav   their recordings
    <path>/data_human/                                   the same, read by people; script_info_human.json

Invariant: a folder is right as a whole or an error that lists everything wrong with it; nothing is skipped silently,
except the neutral recordings that do not exist for a speaker's gender and age.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from benchmarks.echomind_attributes import ATTRIBUTES, Attribute

Source = Literal["synthesis", "human"]
Voice = Literal["target", "alternative", "neutral"]
SOURCES: tuple[Source, ...] = get_args(Source)
VOICES: tuple[Voice, ...] = get_args(Voice)
PROBLEMS_SHOWN = 20
"""Lines of an error; a folder half downloaded has thousands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One line that a user says, in several voices."""

    source: Source
    case_id: str
    """The script's id, the same in both sources."""
    topic: str
    spoken_info: str
    """The target voice's attribute, in the data's own words."""
    record: Mapping[str, Any]
    """Every field of the data."""
    folder: Path

    @property
    def attribute(self) -> Attribute:
        """The target voice's attribute."""
        return ATTRIBUTES[self.spoken_info]

    def has(self, voice: Voice) -> bool:
        """Whether the benchmark has this voice: nobody sounds of no gender and no age."""
        return voice != "neutral" or self.attribute.coarse != "speaker"

    def info(self, voice: Voice) -> Mapping[str, Any]:
        """What the data says of one voice."""
        info = self.record.get(f"{voice}_audio_info")
        return info if isinstance(info, Mapping) else {}

    def recording(self, voice: Voice) -> Path | None:
        """The recording in one voice; None where the data names none."""
        name = self.info(voice).get(f"{voice}_input_audio_file")
        return self.folder / "audio" / name if isinstance(name, str) and name else None


def read_scripts(path: Path, sources: Sequence[Source], voices: Sequence[Voice]) -> list[Script]:
    """The scripts of a data folder, in the data's order, with every recording of the voices there.

    Raises:
        ValueError: the folder has another layout, or anything in it is wrong; the message lists all of it.
    """
    absent = [source for source in sources if not _index(path, source).is_file()]
    if absent:
        raise ValueError(_layout_message(path, absent))
    problems: list[str] = []
    read = [script for source in sources for script in _source(path, source, problems)]
    scripts = [script for script in read if script.spoken_info in ATTRIBUTES]
    problems += _unknown_labels(read)
    problems += _without_recording(path, scripts, voices)
    if problems:
        raise ValueError(listed(f"EchoMind data in {path}", problems))
    return scripts


def _index(path: Path, source: Source) -> Path:
    return path / f"data_{source}" / f"script_info_{source}.json"


def _layout_message(path: Path, absent: Sequence[Source]) -> str:
    expected = ", ".join(str(_index(path, source)) for source in absent)
    message = f"no EchoMind data in {path}: there is no {expected} (beside it audio/<attribute>/<file>.wav)"
    for folder in (path / "dataset", path.parent):
        if all(_index(folder, source).is_file() for source in absent):
            return f"{message}; did you mean {folder}?"
    others = [source for source in SOURCES if _index(path, source).is_file()]
    return f"{message}; the source there is {', '.join(others)}" if others else message


def _source(path: Path, source: Source, problems: list[str]) -> Iterator[Script]:
    """One source's scripts; what is wrong with it is added to the problems."""
    index = _index(path, source)
    name = index.relative_to(path)
    try:
        records = json.loads(index.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problems.append(f"{name}: {error}")
        return
    if not isinstance(records, list):
        problems.append(f"{name}: must be a list of scripts")
        return
    seen: set[str] = set()
    for number, record in enumerate(records, start=1):
        wrong = _wrong(record, seen)
        if wrong:
            problems.append(f"{name}: script {number}: {wrong}")
        else:
            yield _script(index.parent, source, record)


def _wrong(record: Any, seen: set[str]) -> str:
    """What is wrong with one script's own fields; empty where nothing is."""
    if not isinstance(record, dict):
        return "must be an object"
    wrong = [name for name in ("topic", "spoken_info") if not isinstance(record.get(name), str)]
    wrong += [] if isinstance(record.get("case_id"), str | int) else ["case_id"]
    if wrong:
        return f"no {', '.join(wrong)}, or not text"
    case_id = str(record["case_id"])
    if case_id in seen:
        return f"case_id {case_id} a second time"
    seen.add(case_id)
    return ""


def _script(folder: Path, source: Source, record: Mapping[str, Any]) -> Script:
    return Script(
        source=source,
        case_id=str(record["case_id"]),
        topic=record["topic"],
        spoken_info=record["spoken_info"],
        record=record,
        folder=folder,
    )


def _unknown_labels(scripts: Iterable[Script]) -> Iterator[str]:
    """One line for all of them: the valid labels are many."""
    unknown: dict[str, list[str]] = {}
    for script in scripts:
        if script.spoken_info not in ATTRIBUTES:
            unknown.setdefault(script.spoken_info, []).append(script.case_id)
    if unknown:
        found = ", ".join(f"{label!r} ({cases[0]}, {len(cases)} in all)" for label, cases in unknown.items())
        yield f"unknown spoken_info {found}; valid: {'; '.join(ATTRIBUTES)}"


def _without_recording(path: Path, scripts: Iterable[Script], voices: Sequence[Voice]) -> Iterator[str]:
    for script in scripts:
        for voice in filter(script.has, voices):
            recording = script.recording(voice)
            if recording is None:
                yield f"data_{script.source}: {script.case_id}: names no recording of the {voice} voice"
            elif not recording.is_file():
                yield f"{os.path.relpath(recording, path)}: no such file"


def listed(subject: str, problems: Sequence[str], most: int = PROBLEMS_SHOWN) -> str:
    """All that is wrong as one message, the beginning of a long list and its length."""
    shown = [f"  {problem}" for problem in problems[:most]]
    rest = len(problems) - len(shown)
    more = [f"  and {rest} more"] if rest else []
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    return "\n".join([f"{subject}: {count}", *shown, *more])
