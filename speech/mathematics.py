"""Mathematics as it is said: `3/4 of 2^5` to "three quarters of two to the power of five", and back.

Invariant: what is no mathematics is left as it stands. `figures(words(text))` writes the same numbers and operators as
`text` does, for the kinds of the table in tests/speech/test_mathematics.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_NUMBER = r"\d+(?:,\d{3})+(?:\.\d+)?|\d+\.\d+|\d+"
_OPERATORS = {
    "+": "plus",
    "-": "minus",
    "−": "minus",
    "×": "times",
    "*": "times",
    "·": "times",
    "÷": "divided by",
    "/": "over",
    "=": "equals",
    "≠": "is not equal to",
    "<": "is less than",
    ">": "is greater than",
    "≤": "is less than or equal to",
    "≥": "is greater than or equal to",
    "≈": "is about",
    "%": "percent",
    "π": "pi",
    "(": "the quantity",
}
_SPOKEN = {
    "is less than or equal to": "≤",
    "is greater than or equal to": "≥",
    "is not equal to": "≠",
    "is less than": "<",
    "is greater than": ">",
    "is about": "≈",
    "the square root of": "√",
    "square root of": "√",
    "the cube root of": "∛",
    "cube root of": "∛",
    "to the power of": "^",
    "divided by": "÷",
    "multiplied by": "×",
    "squared": "^2",
    "cubed": "^3",
    "plus": "+",
    "minus": "-",
    "times": "×",
    "over": "/",
    "equals": "=",
    "percent": "%",
    "pi": "π",
    "the quantity": "(",
}
_ROOTS = {"√": "the square root of", "∛": "the cube root of"}
_DENOMINATORS = {2: ("half", "halves"), 4: ("quarter", "quarters")}
LARGEST_DENOMINATOR = 20
"""Fractions up to here are said with an ordinal (`two fifths`), others as `seven over thirty two`."""


# --- to words -----------------------------------------------------------------------------------------------------


def words(text: str) -> str:
    """A text with its mathematics written out as it is said.

    Args:
        text: may hold integers, decimals, negative numbers, `+ - × * ÷ / =`, comparisons, `%`, `√`, `∛`, fractions
            `3/4` and powers `x^2`, `2^5`; hyphens and slashes inside words stay.
    """
    said = re.sub(rf"([√∛])\s*\(?({_NUMBER}|[a-z]\b)\)?", lambda m: f" {_ROOTS[m[1]]} {m[2]} ", text)
    said = re.sub(rf"(?<![\w.])({_NUMBER})\s*/\s*({_NUMBER})(?![\w]|\.\d)", _fraction, said)
    said = re.sub(r"\^\s*\{?(-?[\w.]+)\}?", _power, said)
    said = re.sub(r"(^|[\s(=<>×÷*+])[-−](?=[\d.])", r"\1 minus ", said)
    said = re.sub(r"(?<=[\w).])\s*([-−])\s*(?=[\d(√])(?<=[\d)\s]\1)|(?<=\s)[-−](?=\s)", " minus ", said)
    said = re.sub(r"(?<![A-Za-z])\s*([/*])\s*(?![A-Za-z])", lambda m: f" {_OPERATORS[m[1]]} ", said)
    said = re.sub(r"\((?=\s*[\d√])", " the quantity ", said)
    said = re.sub(r"(?<=\d)\s*\)", " ", said)
    said = re.sub(r"[+−×·÷=≠<>≤≥≈%π]", lambda m: f" {_OPERATORS[m[0]]} ", said)
    said = re.sub(rf"(?<![\w.])({_NUMBER})(?!\w)", lambda m: number_words(m[1]), said)
    return re.sub(r"\s+([.,;:?!])", r"\1", " ".join(said.split()))


def number_words(number: str) -> str:
    """`2,351` -> `two thousand three hundred and fifty-one` without the hyphen; `0.25` -> `zero point two five`."""
    from num2words import num2words

    plain = number.replace(",", "")
    whole, _, decimals = plain.partition(".")
    said = num2words(int(whole)).replace("-", " ").replace(",", "")
    return f"{said} point {' '.join(num2words(int(digit)) for digit in decimals)}" if decimals else said


def _fraction(match: re.Match[str]) -> str:
    above, below = match[1], match[2]
    if "." in above + below or not 2 <= int(below.replace(",", "")) <= LARGEST_DENOMINATOR:
        return f"{above} over {below}"
    singular, plural = _denominator(int(below))
    return f"{above} {singular if int(above.replace(',', '')) == 1 else plural}"


def _denominator(number: int) -> tuple[str, str]:
    from num2words import num2words

    ordinal = num2words(number, to="ordinal")
    return _DENOMINATORS.get(number, (ordinal, f"{ordinal}s"))


def _power(match: re.Match[str]) -> str:
    named = {"2": " squared", "3": " cubed"}
    exponent = match[1]
    if exponent.startswith("-"):
        exponent = f"minus {exponent[1:]}"
    return named.get(exponent, f" to the power of {exponent}")


# --- and back -----------------------------------------------------------------------------------------------------


def figures(said: str) -> str:
    """A spoken text with its numbers and operators in figures, without spaces inside an expression.

    `three quarters of two to the power of five` -> `3/4 of 2^5`. Ordinals that are no denominator (`the third`) stay.
    """
    text = " ".join(re.findall(r"[A-Za-z]+|\d[\d,.]*\d|\d|[^\sA-Za-z\d]", said.replace("-", " ")))
    lowered = text.lower()
    tokens = _numbered(lowered.split())
    joined = " ".join(tokens)
    for phrase, sign in _SPOKEN.items():
        joined = re.sub(rf"(?<![a-z]){phrase}(?![a-z])", sign, joined)
    joined = re.sub(r"\s*([\^/])\s*", r"\1", joined)
    joined = re.sub(r"([√∛(])\s+", r"\1", joined)
    joined = re.sub(r"\s+([%)?.,!])", r"\1", joined)
    return re.sub(r"(?<=[\d)])\s*([+×÷=<>≤≥≠≈-])\s*(?=[\d(√∛-])", r"\1", joined)


def _numbered(tokens: Sequence[str]) -> list[str]:
    """Number words as figures, fractions of them as `3/4`."""
    result: list[str] = []
    at = 0
    while at < len(tokens):
        value, used = _cardinal(tokens[at:])
        if not used:
            result.append(tokens[at])
            at += 1
            continue
        at += used
        figure, more = _decimals(value, tokens[at:])
        at += more
        if at < len(tokens) and (below := _denominators().get(tokens[at])) and not more:
            figure, at = f"{figure}/{below}", at + 1
        result.append(figure)
    return result


def _decimals(whole: int, tokens: Sequence[str]) -> tuple[str, int]:
    if not tokens or tokens[0] != "point":
        return str(whole), 0
    digits = []
    for token in tokens[1:]:
        if _units().get(token, 10) > 9:
            break
        digits.append(str(_units()[token]))
    return (f"{whole}.{''.join(digits)}", 1 + len(digits)) if digits else (str(whole), 0)


def _cardinal(tokens: Sequence[str]) -> tuple[int, int]:
    """The number that words begin with, and how many of them it takes; (0, 0) where they begin with none."""
    if tokens[0] in ("a", "one") and len(tokens) > 1 and tokens[1] in _denominators() and tokens[0] == "a":
        return 0, 0
    total = part = used = 0
    previous = 0
    for at, token in enumerate(tokens):
        if (
            token == "and"
            and used
            and at + 1 < len(tokens)
            and tokens[at + 1] in _units()
            and previous >= 100
        ):
            continue
        value = _units().get(token)
        if value is not None and used and not _continues(previous, value):
            break
        if value is not None:
            part += value
        elif token == "hundred" and used:
            part, value = part * 100, 100
        elif token in _SCALES and used:
            total, part, value = total + part * _SCALES[token], 0, _SCALES[token]
        else:
            break
        previous, used = value, at + 1
    return total + part, used


def _continues(previous: int, value: int) -> bool:
    """`twenty` + `five`, `hundred` + anything below it; `two` + `three` are two numbers."""
    return previous >= 100 or (previous >= 20 and 1 <= value <= 9)


_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}


@lru_cache(maxsize=1)
def _units() -> dict[str, int]:
    from num2words import num2words

    return {num2words(n): n for n in [*range(20), *range(20, 100, 10)]}


@lru_cache(maxsize=1)
def _denominators() -> dict[str, int]:
    return {form: n for n in range(2, LARGEST_DENOMINATOR + 1) for form in _denominator(n)}
