"""The instructions of EchoMind's conversation task in three strengths.

Invariant: these strings are the benchmark's protocol, so they stay as published, to the letter. Paper and released code
disagree about them, so there are two sets; the text chosen is part of every trial's identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal


@dataclass(frozen=True, slots=True)
class PromptSet:
    """System prompts, in each of which `{topic}` may stand. P1 has none: the model gets the audio alone."""

    basic: str
    """P2."""
    enhanced: Mapping[str, str]
    """P3, by the coarse dimension of the script's vocal attribute."""

    def template(self, strength: Literal["zero", "basic", "enhanced"], coarse: str) -> str:
        """The text of one strength for one kind of script; empty for `zero`."""
        if strength == "zero":
            return ""
        return self.basic if strength == "basic" else self.enhanced[coarse]

    def templates(self, strength: Literal["zero", "basic", "enhanced"]) -> str:
        """All texts of one strength, as one string that changes when one of them does."""
        if strength == "enhanced":
            return "\n\n".join(f"{coarse}:\n{text}" for coarse, text in self.enhanced.items())
        return self.template(strength, "")


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
"""`echomind_code`: the released runner, src/eval-slm/eval_response_main.py of hlt-cuhksz/EchoMind; what it puts in
their place for Qwen2.5-Omni and EchoX is those models' matter. `echomind_paper`: the wording of arXiv 2510.22758,
section "Prompts Setup", which quotes of P2 only "provide a direct and concise response"."""
