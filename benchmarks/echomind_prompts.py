"""The instructions of EchoMind's tasks; those of the conversation in three strengths.

Invariant: these strings are the benchmark's protocol, so they stay as published, to the letter (a typing error and the
space before a line's end too). Paper and released code disagree about the conversation, so there are two sets; the text
chosen is part of every trial's identity. The texts of the arm `cue` are ours and no part of the publication.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from farm.types import Instruction, Wording

Strength = Literal["zero", "basic", "enhanced", "own"]


@dataclass(frozen=True, slots=True)
class PromptSet:
    """System prompts, in each of which `{topic}` may stand. P1 has none: the model gets the audio alone."""

    basic: str
    """P2."""
    enhanced: Mapping[str, str]
    """P3, by the coarse dimension of the script's vocal attribute."""
    introduces: bool = False
    """Whether the first line says who the assistant is: a model with a default system prompt is told that instead."""

    def template(self, strength: Strength, coarse: str, wording: Wording) -> str:
        """The text of one strength for one kind of script; empty for `zero`.

        Raises:
            ValueError: there is no such strength here.
        """
        if strength == "own":
            raise ValueError(
                "a prompt of strength own needs its text, `system`; there are zero, basic, enhanced"
            )
        if strength == "zero":
            return ""
        return self._worded(self.basic if strength == "basic" else self.enhanced[coarse], wording)

    def templates(self, strength: Strength, wording: Wording) -> str:
        """All texts of one strength, as one string that changes when one of them does."""
        if strength == "enhanced":
            texts = {coarse: self.template(strength, coarse, wording) for coarse in self.enhanced}
            return "\n\n".join(f"{coarse}:\n{text}" for coarse, text in texts.items())
        return self.template(strength, "", wording)

    def _worded(self, text: str, wording: Wording) -> str:
        if not self.introduces or wording.default_system is None:
            return text
        rest = text.split("\n", 1)[1]
        return f"{escaped(wording.default_system)}\n{rest}" if wording.default_system else rest


def escaped(text: str) -> str:
    """The text as a template that says just this."""
    return text.replace("{", "{{").replace("}", "}}")


_ASSISTANT = "You are a helpful assistant.\nThe current topic/scenario is: {topic}.\n"
_SERVICE = "You are an assistant in a customer service setting.\nThe current topic/scenario is: {topic}.\n"
_ONE_TURN = "Your task is to provide a one-turn response based on the input audio"
_CONCISE = "Your task is to provide a direct and concise response"

PROMPT_SETS: Mapping[str, PromptSet] = MappingProxyType(
    {
        "echomind_code": PromptSet(
            basic=f"{_ASSISTANT}{_ONE_TURN}.",
            enhanced={
                "speaker": f"{_SERVICE}{_ONE_TURN}, considering both the spoken content and any personal information "
                "present in the user's voice. The response should:\n"
                "- Include an appropriate form of address based on the personal information.\n"
                "- Be tailored to the content of the user's spoken text and their personal information.\n"
                "- Avoid any form of gender bias.",
                "paralinguistic": f"{_ASSISTANT}{_ONE_TURN}, considering both the spoken content and any voice "
                "characteristics present in the user's voice.",
                "environment": f"{_ASSISTANT}{_ONE_TURN}, considering both the spoken content and any background "
                "sounds present.",
            },
            introduces=True,
        ),
        "echomind_paper": PromptSet(
            basic=f"{_CONCISE}.",
            enhanced={
                "speaker": f"{_CONCISE}, considering both the spoken content and any personal information present in "
                "the user's voice.",
                "paralinguistic": f"{_CONCISE} in a customer service setting, considering both the spoken content and "
                "any paralinguistic information present in the user's voice.",
                "environment": f"{_CONCISE}, considering both the spoken content and any background sounds present.",
            },
        ),
    }
)
"""`echomind_code`: the released runner, src/eval-slm/eval_response_main.py of hlt-cuhksz/EchoMind (for Qwen2.5-Omni it
puts that model's default in the place of the first line). `echomind_paper`: the wording of arXiv 2510.22758, section
"Prompts Setup", which quotes of P2 only "provide a direct and concise response"."""

_HELPFUL = "You are a helpful assistant."
_TRANSCRIBE = Instruction(
    system="\nYou task is to listen to the audio snippet carefully and answer the user's question.",
    user="Please transcribe the speech in the input audio into text.",
)
_CHOOSE = (
    "\nYour task is to determine the correct answer to a multiple-choice question based on an audio clip. Analyze the "
    "audio and select the most accurate answer (A, B, C, or D) without additional explanation."
    "\nPlease provide your answer in the format: 'The answer is: [A/B/C/D]'."
)


def transcribe(wording: Wording) -> Instruction:
    """What a model is asked for a transcript with: its own way where it has one (eval_asr_main.py does so too)."""
    if wording.transcribe is not None:
        return wording.transcribe
    return Instruction(system=_introduced(wording, _TRANSCRIBE.system or ""), user=_TRANSCRIBE.user)


def choose(wording: Wording) -> str:
    """The system prompt of the multiple-choice tasks (eval_mcq_main.py), "A, B, C, or D" for two options too."""
    return _introduced(wording, _CHOOSE)


def question_text(question: str, options_text: str) -> str:
    """A multiple-choice question as the model reads it."""
    return f"\nQuestion: {question}\nOptions:\n{options_text}"


def _introduced(wording: Wording, task: str) -> str:
    if wording.default_system == "":
        return task.lstrip("\n")
    return f"{wording.default_system or _HELPFUL} {task}"


ORACLE: Mapping[str, str] = MappingProxyType(
    {
        "speaker": "Note on the recording, known for certain: the voice tells this of the speaker: {cue}.",
        "paralinguistic": "Note on the recording, known for certain: the speaker's voice has this quality: {cue}.",
        "environment": "Note on the recording, known for certain: behind the speech there is this: {cue}.",
        "none": "Note on the recording, known for certain: the voice is neutral, and nothing is heard behind it.",
    }
)
"""The arm cue=oracle: the cue of the voice that is heard, told beside the audio. EchoMind reports such an upper bound
(Table 7) and does not say how the cue was put: these words are SpeechFarm's own, by coarse dimension; `none` is for a
voice without a cue."""


def oracle(coarse: str, cue: str | None) -> str:
    """The note on one recording; a cue of None is a voice without one."""
    return ORACLE["none"] if cue is None else ORACLE[coarse].format(cue=cue)
