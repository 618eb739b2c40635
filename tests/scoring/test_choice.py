"""What a reply chose: every kind of definite answer, and every kind of none."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.choice import parse_choice
from tests.scoring.choice_replies import KINDS, MOODS, WITH_OPTIONS

FOUR = ["The voice is happy", "The voice is sad", "The voice is angry", "The voice is calm"]


@pytest.mark.parametrize(
    ("kind", "reply", "letter"),
    [(kind, reply, letter) for kind, replies in KINDS.items() for reply, letter in replies],
)
def test_a_letter_is_read_as_a_careful_reader_reads_it(kind: str, reply: str, letter: str | None) -> None:
    assert parse_choice(reply, "ABCD") == letter, kind


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind, cases in WITH_OPTIONS.items() for case in cases]
)
def test_an_options_text_is_its_letter(kind: str, case: tuple[str, str | None, str, list[str]]) -> None:
    reply, letter, letters, options = case
    assert parse_choice(reply, letters, options) == letter, kind


DEFINITE = [
    "{L}", "({L})", "[{L}]", "{L}.", "{L})", "**{L}**", "{l}", "({l})", "\\boxed{{{L}}}", "The answer is: [{L}]",
    "The answer is {L}", "The answer is {l}.", "Answer: {L}", "Answer: **{L}**", "The answer is definitely {L}.",
    "Uh, the answer is, um, {L}.", "I choose {L}.", "Option {L}", "option {l}.", "It's {L}.", "I think it's {L}.",
    "The correct answer is option {L}: {text}.", "{L}. {text}", "{L}: {text}", "{L}) {text}.", "{text}", "{text}.",
    "The answer is: {text}.", "<think>A or B? C? D!</think>{L}", "<think>The answer is {R}.</think>The answer is {L}",
    "It is not {R}, it is {L}.", "{R} is wrong. {L}.", "It can't be {R}, so the answer is {L}.", "{L}, not {R}.",
    "The answer is {R}. Wait, no, the answer is {L}.", "答案是{L}", "答案：{L}", "选{L}。", "应该是{L}",
    "正确答案是（{L}）",
    "不是{R}，是{L}", "{L} is correct.", "{L} because of the pace.", "{L}\nThe voice says so.", "Final answer: {L}",
    "Based on the voice, {L}.", "The answer is: [A/B/C/D]. The answer is: {L}", "{{\"answer\": \"{L}\"}}",
]  # fmt: skip
INDEFINITE = [
    "{L} or {R}", "Both {L} and {R}", "{L}, {R}", "{L}/{R}", "The answer is {L} or {R}.", "The answer is: [{L}/{R}]",
    "The answer is {L}. The answer is {R}.", "It is not {L}.", "{L} is wrong.", "Is it {L} or is it {R}?",
    "({L}) and ({R})", "The answer is: [A/B/C/D]", "A, B, C, or D", "<think>The answer is {L}", "{L}\n{R}",
]  # fmt: skip


def said(template: str, letter: str, rejected: str, text: str) -> str:
    return template.format(L=letter, l=letter.lower(), R=rejected, text=text)


@pytest.mark.parametrize("letters", ["AB", "ABC", "ABCD"])
@pytest.mark.parametrize("template", DEFINITE)
def test_every_letter_is_read_in_every_form(template: str, letters: str) -> None:
    options = FOUR[: len(letters)]
    for n, letter in enumerate(letters):
        reply = said(template, letter, letters[n - 1], options[n])
        assert parse_choice(reply, letters, options) == letter, reply
        if "{text}" not in template or "{L}" in template:
            assert parse_choice(reply, letters) == letter, reply


@pytest.mark.parametrize("letters", ["AB", "ABC", "ABCD"])
@pytest.mark.parametrize("template", INDEFINITE)
def test_no_letter_is_ever_guessed(template: str, letters: str) -> None:
    for n, letter in enumerate(letters):
        reply = said(template, letter, letters[n - 1], FOUR[n])
        assert parse_choice(reply, letters, FOUR[: len(letters)]) is None, reply
        assert parse_choice(reply, letters) is None, reply


@pytest.mark.parametrize("reply", ["C", "The answer is C.", "(d)", "Answer: E", "选C"])
def test_a_letter_that_the_question_does_not_have_is_none(reply: str) -> None:
    assert parse_choice(reply, "AB") is None
    assert parse_choice(reply, "AB", ["Yes", "No"]) is None


def test_questions_with_ten_options_have_the_letters_that_are_words() -> None:
    ten = list("ABCDEFGHIJ")
    assert parse_choice("I", ten) == "I"
    assert parse_choice("The answer is I.", ten) == "I"
    assert parse_choice("I think J", ten) == "J"
    assert parse_choice("I think so", ten) is None
    assert parse_choice("gee", ten) == "G"


def test_the_letter_comes_back_as_it_was_given() -> None:
    assert parse_choice("The answer is (B)", "abcd") == "b"


def test_a_letter_before_another_options_words_is_no_answer() -> None:
    assert parse_choice("B. happy", "ABCD", MOODS) is None
    assert parse_choice("B. sad", "ABCD", MOODS) == "B"


@given(reply=st.text(alphabet="ABCDabcd isnotr.,:/()[]*\n答案是选不<think>/", max_size=60))
def test_nothing_but_a_valid_letter_or_none_ever_comes_out(reply: str) -> None:
    assert parse_choice(reply, "ABC", FOUR[:3]) in (None, "A", "B", "C")


@pytest.mark.parametrize(
    "loop", ["b ", "A, ", "The answer is ", "bee ", "<b>", "\\boxed{", "not ", "{(", "<think>"]
)
def test_a_model_in_a_loop_does_not_stop_the_scorer(loop: str) -> None:
    began_s = time.perf_counter()
    parse_choice(loop * 3000, "ABCD", FOUR)
    assert time.perf_counter() - began_s < 5
