"""Spoken mathematics: a table of kinds, there and back."""

import pytest

from speech.mathematics import figures, words

KINDS = [
    ("digits", "2351", "two thousand three hundred and fifty one", "2351"),
    ("thousands", "12,000", "twelve thousand", "12000"),
    ("decimals", "0.25", "zero point two five", "0.25"),
    ("sum", "17 + 25", "seventeen plus twenty five", "17+25"),
    ("difference", "20 - 8", "twenty minus eight", "20-8"),
    ("negative", "x = -3", "x equals minus three", "x = - 3"),
    ("product", "9 × 8", "nine times eight", "9×8"),
    ("quotient", "100 ÷ 4", "one hundred divided by four", "100÷4"),
    ("half", "1/2 of 18", "one half of eighteen", "1/2 of 18"),
    ("quarters", "3/4 of 20", "three quarters of twenty", "3/4 of 20"),
    ("fraction", "2/7", "two sevenths", "2/7"),
    ("long fraction", "7/32", "seven over thirty two", "7/32"),
    ("square", "5^2", "five squared", "5^2"),
    ("cube", "2^3", "two cubed", "2^3"),
    ("power", "2^5", "two to the power of five", "2^5"),
    ("square root", "√81", "the square root of eighty one", "√81"),
    ("cube root", "∛27", "the cube root of twenty seven", "∛27"),
    ("percent", "15% of 60", "fifteen percent of sixty", "15% of 60"),
    ("comparison", "3 ≤ 4", "three is less than or equal to four", "3≤4"),
    ("equation", "6 × 7 = 42", "six times seven equals forty two", "6×7=42"),
]


@pytest.mark.parametrize(("kind", "written", "said", "back"), KINDS, ids=[kind for kind, *_ in KINDS])
def test_there_and_back(kind: str, written: str, said: str, back: str) -> None:
    assert words(written) == said
    assert figures(said) == back


def test_a_bracket_is_said_as_the_quantity() -> None:
    assert words("4 ÷ (2 + 8)") == "four divided by the quantity two plus eight"


@pytest.mark.parametrize("text", ["a well-known author", "and/or", "What is art?", "the e-mail (sent late)"])
def test_what_is_no_mathematics_stays(text: str) -> None:
    assert words(text) == text


def test_a_sentence_keeps_its_words_around_the_numbers() -> None:
    asked = "A box holds 12 eggs. How many eggs are in 6 boxes?"
    assert words(asked) == "A box holds twelve eggs. How many eggs are in six boxes?"
    assert figures("the answer is one hundred and five.") == "the answer is 105."


def test_number_words_side_by_side_are_several_numbers() -> None:
    assert figures("two three and four") == "2 3 and 4"
