"""Multiple-choice questions for data/echomind_mini, out of its recipe: what `make_echomind_mini.py` writes to MCQ/.

What can be told from a recording's label is asked by rule; what follows from words and voice together is asked in the
recipe's own words (`questions`).

Invariant: one option is right and no other can be taken for right: options of one question are of one dimension, or
none but the right one is true of any recording of the set. The order of options follows from the question alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.echomind_attributes import ATTRIBUTES
from benchmarks.echomind_scripts import VOICES, Voice
from farm.ids import digest

Level = Literal["understanding", "reasoning"]
TRUE_OF: Mapping[str, str] = {
    "female": "The speaker is a woman.",
    "male": "The speaker is a man.",
    "fast": "The speaker talks fast.",
    "slow": "The speaker talks slowly.",
    "sound of raining": "It is raining in the background.",
    "sound of thunderstorm and thunder": "A thunderstorm is heard in the background.",
    "sound of wind blowing": "Wind is blowing in the background.",
    "sound of sea waves": "Sea waves are heard in the background.",
    "sound of alarm clock ringing": "An alarm clock rings in the background.",
    "sound of ringtone": "A phone rings in the background.",
    "sound of crowd's chatter": "People chatter in the background.",
}
"""Attribute (an environment's with its long label) -> what is true of a recording that has it."""
NEVER_TRUE = (
    "The speaker is a child.",
    "The speaker is whispering.",
    "The speaker coughs while speaking.",
    "The speaker is sobbing.",
    "A dog barks in the background.",
    "Music plays in the background.",
    "A car drives by in the background.",
)
"""Of no recording of the set."""
ALIKE = (
    {"sound of raining", "sound of thunderstorm and thunder"},
    {"sound of alarm clock ringing", "sound of ringtone"},
    {"sound of sea waves", "sound of wind blowing", "sound of raining"},
)
"""Sounds that are too much alike to be options of one question."""
CROWD = "sound of crowd's chatter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question, its right option first."""

    level: Level
    type: str
    question: str
    options: tuple[str, ...]


def questions(
    recipe: Sequence[Mapping[str, Any]], files: Mapping[tuple[int, Voice], str]
) -> dict[str, list[Any]]:
    """Both files of MCQ/, by level.

    Args:
        recipe: the scripts.
        files: (place in the recipe, voice) -> the recording under audio/, for every recording there is.
    """
    found: dict[str, list[Any]] = {"understanding": [], "reasoning": []}
    for number, script in enumerate(recipe):
        for voice in (v for v in VOICES if (number, v) in files):
            for asked in [*_by_rule(script, voice), *_written(script, voice)]:
                entries = found[asked.level]
                entries.append(_entry(len(entries) + 1, asked, files[number, voice]))
    return found


def _entry(number: int, asked: Asked, file: str) -> dict[str, Any]:
    """A question as EchoMind's file has it; the order of the options is drawn from its text and recording."""
    folder, _, name = file.rpartition("/")
    order = sorted(asked.options, key=lambda option: digest([asked.question, file, option]))
    letters = "ABCD"[: len(order)]
    return {
        "question_id": number,
        "question_type": asked.type,
        "question": asked.question,
        "options_text": "\n".join(
            f"{letter}. {option}" for letter, option in zip(letters, order, strict=True)
        ),
        "answer": letters[order.index(asked.options[0])],
        "audio_dir": folder,
        "audio_name": name,
    }


# --- by rule -----------------------------------------------------------------------------------------------------


def _by_rule(script: Mapping[str, Any], voice: Voice) -> Iterator[Asked]:
    label = cue(script, voice)
    if CROWD in {cue(script, v) for v in ("target", "alternative")}:
        yield _people(label)
    if label is None:
        return
    yield _coarse(label, script["text"])
    yield _fine(label, script["text"])
    yield _empathetic(script, voice)


def cue(script: Mapping[str, Any], voice: Voice) -> str | None:
    """The label of what a voice carries; None for a neutral one."""
    if voice == "neutral":
        return None
    return str(script["spoken_info"] if voice == "target" else script[voice]["spoken_info"])


def _truth(label: str) -> str:
    return TRUE_OF.get(label) or TRUE_OF[ATTRIBUTES[label].name]


def _coarse(label: str, text: str) -> Asked:
    wrong = sorted(NEVER_TRUE, key=lambda option: digest([text, label, option]))[:3]
    return Asked(
        level="understanding",
        type="coarse_grained",
        question="Which of these is true of the recording?",
        options=(_truth(label), *wrong),
    )


def _fine(label: str, text: str) -> Asked:
    fine = ATTRIBUTES[label].fine
    if fine == "gender":
        kind, question, others = "gender", "Who is speaking?", [n for n in ("female", "male") if n != label]
    elif fine == "speed":
        others = [n for n in ("fast", "slow") if n != ATTRIBUTES[label].name]
        kind, question = "speaking_pace", "At what pace does the speaker talk?"
    else:
        kind, question, others = (
            "background_sound",
            "What is heard behind the speaker?",
            _other_sounds(label, text),
        )
    options = (_truth(label), *(TRUE_OF[name] for name in others))
    return Asked(level="understanding", type=kind, question=question, options=options)


def _other_sounds(label: str, text: str) -> list[str]:
    """Three sounds that are not like this one, nor like each other."""
    chosen = [label]
    for sound in sorted(
        (s for s in TRUE_OF if s.startswith("sound of")), key=lambda s: digest([text, label, s])
    ):
        if not any({sound, other} <= alike for other in chosen for alike in ALIKE) and sound not in chosen:
            chosen.append(sound)
    return chosen[1:4]


def _people(label: str | None) -> Asked:
    options = ("Yes", "No") if label == CROWD else ("No", "Yes")
    return Asked(
        level="reasoning",
        type="multiple_people_detection",
        question="Does the recording contain the voices of several people?",
        options=options,
    )


def _empathetic(script: Mapping[str, Any], voice: Voice) -> Asked:
    replies = {v: script[v]["responses"][0] for v in VOICES}
    return Asked(
        level="reasoning",
        type="empathetic_response",
        question="Which reply shows that the listener noticed how, or where, this was said?",
        options=(replies.pop(voice), *replies.values()),
    )


# --- in the recipe's own words -----------------------------------------------------------------------------------


def _written(script: Mapping[str, Any], voice: Voice) -> Iterator[Asked]:
    """A question's first option is right for target speech, its second for alternative speech, the rest for neither."""
    for written in script.get("questions", ()):
        if voice == "neutral":
            continue
        target, alternative, *others = written["options"]
        first, second = (target, alternative) if voice == "target" else (alternative, target)
        yield Asked(
            level="reasoning",
            type=written["type"],
            question=written["question"],
            options=(first, second, *others),
        )
