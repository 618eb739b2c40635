"""Which option a reply names by its words instead of its letter.

Invariant: an option counts where all its words stand in the reply in a row, not negated and not inside a longer option
that stands there too; a part of an option counts only as the whole reply, and only where one option has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scoring.choice_text import plain, words

_LEAD = re.compile(
    r"(?:(?:so|well|okay|yes|uh|um|hmm),? )*(?:(?:the |my )?(?:correct |right |best |final )?(?:answer|choice|option)"
    r"(?: is|:)|i (?:think|believe|guess|would say|choose|pick|select)(?: that)?|i'd say|it(?:'s| is| sounds like| "
    r"seems)|that's|this is|答案(?:是|:)|我(?:觉得|认为|选))?[\s:,\"'“(]*",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"(?:\b(?:not|no|never|neither|nor|cannot|without|rather than|instead of|unlike)\b|n['’]t\b)"
    r"(?:\s+(?!but\b|and\b|so\b|just\b|only\b)[\w'’]+){0,4}\s*[\"'“‘(]*\Z|[不没非无]\Z|不是\s*\Z",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\b(?:cannot|can['’]?t|could not|couldn['’]?t|unable to|impossible to|hard to|difficult to|not sure|unsure|"
    r"don['’]?t know|do not know|not clear|unclear|not possible|insufficient|sorry|no audio|unknown|undetermined)\b"
    r"|无法|不能|不知道|不确定|抱歉|难以",
    re.IGNORECASE,
)
_LITTLE = frozenset(
    "a an the is are was were be it its he she they his her their this that there in on at of to and or but with by "
    "speaker speakers voice audio sound sounds person user speech not no yes very more most one option answer".split()
)
"""Words that tell no option from another."""
LONGEST_OPTION = 2000
"""Characters after a letter in which an option's words are looked for."""
_ONE_WORD = frozenset(
    {"yes", "no", "true", "false", "none", "both", "neither", "other", "是", "否", "对", "错"}
)
"""Options that are also said for other reasons: they count only at the beginning of the reply or after a cue."""


@dataclass(frozen=True, slots=True)
class _Named:
    """An option whose words stand in the reply."""

    option: int
    first: int
    """Of the reply's words."""
    last: int


def option_words(options: Sequence[str], letters: Sequence[str]) -> list[list[str]]:
    """Each option's words, without its own letter: `B. Happy` is `happy`."""
    texts = [
        re.sub(rf"\A\s*[(\[]?{letter}[)\].:、]\s*", "", plain(option), flags=re.IGNORECASE)
        for option, letter in zip(options, letters, strict=True)
    ]
    return [[word for word, _, _ in words(text)] for text in texts]


def whole(text: str, options: Sequence[Sequence[str]]) -> int | None:
    """The one option that the whole reply is, word by word; an option that is itself a letter cannot be told so."""
    said = [word for word, _, _ in words(text)]
    found = [
        n for n, option in enumerate(options) if option and list(option) == said and len("".join(option)) > 1
    ]
    return found[0] if len(found) == 1 else None


def after_label(text: str, end: int, options: Sequence[Sequence[str]]) -> set[int]:
    """The options whose words follow a label directly, up to the end of the sentence: `B. Happy`."""
    if not re.match(r"[\"')\]]*\s*[.):\-–—]", text[end:]):
        return set()
    rest = text[end : end + LONGEST_OPTION]
    said = words(rest)
    found = set()
    for number, option in enumerate(options):
        length = len(option)
        if length and [word for word, _, _ in said[:length]] == list(option):
            following = rest[said[length - 1][2] :]
            found |= {number} if re.match(r"[\s\"')\]]*(?:\Z|[.,;!\n。])", following) else set()
    return found


def begins(text: str, at: int, options: Sequence[Sequence[str]]) -> set[int]:
    """The options whose words begin at a place of the text."""
    said = [word for word, _, _ in words(text[at : at + LONGEST_OPTION])]
    return {n for n, option in enumerate(options) if option and said[: len(option)] == list(option)}


def named(text: str, options: Sequence[Sequence[str]]) -> int | None:
    """The one option that the reply names; None where it names none or several."""
    if len({tuple(option) for option in options}) < len(options):
        return None
    lead = _LEAD.match(text)
    body = text[lead.end() :] if lead else text
    found = {place.option for place in _places(text, options) if _counts(text, place, options)}
    if len(found) == 1:
        return found.pop()
    if found:
        stated = _stated(text, body, options)
        return stated if stated in found else None
    return _part(body, options)


def _stated(text: str, body: str, options: Sequence[Sequence[str]]) -> int | None:
    """The longest option that the reply begins with after a phrase that gives an answer."""
    if body == text:
        return None
    found = sorted(begins(body, 0, options), key=lambda n: -len(options[n]))
    return found[0] if found else None


def _places(text: str, options: Sequence[Sequence[str]]) -> list[_Named]:
    said = [word for word, _, _ in words(text)]
    found = [
        _Named(number, first, first + len(option) - 1)
        for number, option in enumerate(options)
        if option
        for first in range(len(said) - len(option) + 1)
        if said[first : first + len(option)] == list(option)
    ]
    return [place for place in found if not any(_inside(place, other) for other in found)]


def _inside(one: _Named, other: _Named) -> bool:
    shorter = one.last - one.first < other.last - other.first
    return shorter and other.first <= one.first and one.last <= other.last


def _counts(text: str, place: _Named, options: Sequence[Sequence[str]]) -> bool:
    option = options[place.option]
    spans = words(text)
    before = text[: spans[place.first][1]]
    if len(option) == 1 and (option[0] in _ONE_WORD or (len(option[0]) == 1 and option[0].isascii())):
        lead = _LEAD.match(text)
        at_start = spans[place.first][1] in (0, lead.end() if lead else 0)
        return at_start and len(option[0]) > 1 and not _REFUSED.search(text)
    clause = re.split(r"[.!?;,\n。]", before)[-1]
    rejected = re.match(
        r"[\"')]*\s*(?:is|are|was|were) (?:wrong|incorrect|not)\b|不对|不正确", text[spans[place.last][2] :]
    )
    return not (_NEGATION.search(clause) or rejected or _REFUSED.search(clause))


def _part(body: str, options: Sequence[Sequence[str]]) -> int | None:
    """The one option of which the whole reply is a part: `fast pace` of `The speaker speaks at a fast pace`."""
    said = [word for word, _, _ in words(body)]
    if not set(said) - _LITTLE or _REFUSED.search(body):
        return None
    holders = [n for n, option in enumerate(options) if any(_runs(option, said))]
    if len(holders) != 1 or {"not", "no"} & set(options[holders[0]]) - set(said):
        return None
    return holders[0]


def _runs(option: Sequence[str], said: Sequence[str]) -> Iterator[bool]:
    for first in range(len(option) - len(said) + 1):
        yield list(option[first : first + len(said)]) == list(said)
