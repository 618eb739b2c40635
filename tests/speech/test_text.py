import pytest

from speech.text import speakable


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Hello there.", "Hello there."),
        ("**Hello** there, `friend`!", "Hello there, friend !"),
        ("# Title\n\n* one\n* two", "Title\none\ntwo"),
        ("I am happy 😀👍🏽 today", "I am happy today"),
        ("a \u2764\ufe0f b 👨\u200d👩\u200d👧 c 🇩🇪", "a b c"),
        ("It is 20 °C, 5% more, $3.50 for Beyoncé™", "It is 20 °C, 5% more, $3.50 for Beyoncé™"),
        ("cut mid-character \ufffd", "cut mid-character"),
        ("null\x00 and \ud800 surrogate", "null and surrogate"),
        ("[[həl]] is not taken for phonemes", "həl is not taken for phonemes"),
        ("你好", "你好"),
    ],
)
def test_what_has_no_spoken_form_is_left_out(text: str, spoken: str) -> None:
    assert speakable(text) == spoken


@pytest.mark.parametrize("text", ["", "  \n\t", "...", "!?", "😀😀", "---", "**", "[[ ]]", "\x00"])
def test_a_text_without_a_letter_or_digit_is_nothing_to_say(text: str) -> None:
    assert speakable(text) == ""
