"""What of a written text can be spoken: synthesisers read `*` as "asterisk" and an emoji by its name."""

from __future__ import annotations

import re
import unicodedata

_MARKUP = re.compile(r"[*_#`~|\[\]]+")
_FIRST_PICTOGRAM = "\u2190"
"""Symbols before the arrows (degree, copyright, trademark ...) have a spoken form; from here on they are pictures."""


def speakable(text: str) -> str:
    """The text without Markdown marks, emoji, control characters and lone surrogates.

    Returns:
        An empty string where no letter or digit is left: there is nothing to say.
    """
    kept = "".join(map(_spoken, unicodedata.normalize("NFC", text)))
    lines = (" ".join(line.split()) for line in _MARKUP.sub(" ", kept).splitlines())
    spoken = "\n".join(line for line in lines if line)
    return spoken if any(character.isalnum() for character in spoken) else ""


def _spoken(character: str) -> str:
    if character.isspace():
        return character
    category = unicodedata.category(character)
    picture = category in ("So", "Sk") and character >= _FIRST_PICTOGRAM
    selector = category == "Me" or "\ufe00" <= character <= "\ufe0f"
    return "" if picture or selector or category.startswith("C") else character
