"""Replies to multiple-choice questions as plain text: without thinking, markup and typographic variants of letters.

Invariant: nothing that states an answer is lost, nothing is added but the words of an answer that was stated by markup
(a box, an answer tag) alone.
"""

from __future__ import annotations

import re
import unicodedata

from scoring.text import without_thinking

_REWRITTEN: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL | re.IGNORECASE), by)
    for pattern, by in (
        (r"<\|[^|<>]*\|>|</?s>|<eos>|<pad>", " "),
        (r"~~.*?~~|<(del|s|strike)>.*?</\1>", " "),
        (r"<(b|i|u|p|em|strong|span|div|code)\b[^<>]*>(.{0,400}?)</\1>", r"\2"),
        (r"\\(?:text|mathrm|mathbf|textbf|mathit|bf|rm)\s*\{([^{}]*)\}", r"\1"),
        (r"\\?\bboxed\s*\{([^{}]*)\}", "\nThe answer is: (\\1).\n"),
        (r"<(answer|final_answer|choice)>\s*(.*?)\s*</\1>", "\nThe answer is: (\\2).\n"),
        (r"</?(?:answer|final_answer|choice)>", "\n"),
        (r"<([a-z])>", r"(\1)"),
        (r"</?[a-z][^<>]*>", " "),
        (r"\\[()\[\]]|\$|\*|`|\\(?=_)", ""),
        (r"^[ \t]*[#>]+[ \t]*", ""),
        (r"_+", " "),
        (r"(?<![/\w])b/c(?=\s+[a-z])", "because"),
    )
)
_SQUARED = {0x1F170 + n: chr(ord("A") + n) for n in range(26)} | {
    0x1F130 + n: chr(ord("A") + n) for n in range(26)
}
"""Letters in a box, which Unicode's normal form leaves as they are or cannot tell from an emoji."""


def plain(reply: str) -> str:
    """The reply as plain text, one form for every way to set a letter; empty where only thinking is left."""
    text = without_thinking(reply)
    text = unicodedata.normalize("NFKC", text.translate(_SQUARED)).replace("\ufe0f", "")
    for pattern, by in _REWRITTEN:
        text = pattern.sub(by, text)
    lines = (re.sub(r"[ \t\u00a0]+", " ", line).strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line)


_WORD = re.compile(r"[\u3400-\u9fff]|(?:(?![\u3400-\u9fff])\w)+(?:['’]\w+)?")


def words(text: str) -> list[tuple[str, int, int]]:
    """Lower-case words with where each begins and ends; a Chinese character is a word."""
    return [(match[0].casefold().replace("’", "'"), *match.span()) for match in _WORD.finditer(text)]
