"""The words of VoxEval that are text: the instruction to chat models, and a question as it is read out.

Invariant: the instruction is the published one, to the letter (VoxEval_eval_glm.py of dreamtheater123/VoxEval); what
has no published words is ours, and said to be.
"""

from __future__ import annotations

from collections.abc import Sequence

INSTRUCTION = (
    "User will provide you with a question. Please choose your answer from options A, B, C, or D. Please only output "
    "the final answer and in English. It should be in this format: The correct answer is {your_answer}."
)
"""To GLM-4-Voice; `{your_answer}` is part of it."""
COT_INSTRUCTION = (
    "User will provide you with a question. Please explain your reasoning step by step, in English. Then choose your "
    "answer from options A, B, C, or D, and end in this format: The correct answer is {your_answer}."
)
"""Ours: the first of its sentences is the published spoken prompt of the chain of thought."""


def instruction(form: str) -> str:
    """The text instruction of a form."""
    return COT_INSTRUCTION if form == "cot" else INSTRUCTION


def question_text(question: str, options: Sequence[str]) -> str:
    """A question with its options as one sentence after the other, as VoxEval has it read out (arXiv 2501.04962, 3.1).

    The paper describes the sequence; these words of it are ours.
    """
    listed = " ".join(
        f"Option {letter}: {option.rstrip('.')}." for letter, option in zip("ABCD", options, strict=True)
    )
    return f"{question} Please choose the answer from options A, B, C, and D. {listed}"
