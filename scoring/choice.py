"""What a reply to a multiple-choice question chose: a letter, or nothing that can be read.

Invariant: never a guess. A reply that states two letters, echoes the instruction, names no valid letter or refuses is
None, and None is not correct: it stays in the denominator of the accuracy and is reported apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from farm.types import Item, Reply, Score, ScoreStatus
from scoring.choice_letters import Mention, mentions, settled, without_corrected
from scoring.choice_options import after_label, begins, named, option_words, whole
from scoring.choice_text import plain


class ChoiceAccuracy:
    """Whether a reply chose the right option, and whether it can be read at all.

    Reads of an item's gold `answer` (the right letter) and `options` (letter -> text). `choice/accuracy` is 1 or 0, or
    `unparsed` where the reply states no letter (which the rate counts as not correct), its label the letter read;
    `choice/unparsed` is 1 or 0; `choice/chance` is one over the number of options, what a blind guess would get.
    """

    version = "1"
    names = ("choice/accuracy", "choice/chance", "choice/unparsed")

    @classmethod
    def weights_fingerprint(cls, config: Mapping[str, Any]) -> str:
        """There are none."""
        return ""

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """Three scores for each reply."""
        return [self._one(item, reply) for item, reply in heard]

    def _one(self, item: Item, reply: Reply) -> list[Score]:
        answer, options = item.gold.get("answer"), item.gold.get("options")
        if not answer or not options:
            return self._without("unavailable", "the item has no gold answer and options")
        if reply.failure is not None:
            return self._without("failed", f"no reply: {reply.failure.kind}")
        if reply.text is None:
            return self._without("not_applicable", "the reply has no text")
        letter = parse_choice(reply.text, list(options), list(options.values()))
        return [
            _accuracy(letter, answer),
            _score("choice/chance", value=1 / len(options)),
            _score("choice/unparsed", value=float(letter is None)),
        ]

    def _without(self, status: ScoreStatus, reason: str) -> list[Score]:
        return [_score(name, status=status, reason=reason) for name in self.names]


def _accuracy(letter: str | None, answer: str) -> Score:
    if letter is None:
        return _score("choice/accuracy", status="unparsed", reason="the reply states no one valid letter")
    return _score("choice/accuracy", value=float(letter == answer), label=letter)


def _score(name: str, **fields: Any) -> Score:
    return Score(name=name, rater="parse_choice", rater_kind="program", **fields)


def parse_choice(reply: str, letters: Sequence[str], options: Sequence[str] | None = None) -> str | None:
    """The letter that a reply chose.

    Args:
        reply: what the model said, as it said it: text, or a transcript of its speech.
        letters: the valid ones, `["A", "B"]` or `"ABCD"`.
        options: their texts, in the letters' order, with or without the letters themselves.

    Returns:
        One of `letters`, or None where the reply does not say exactly one.
    """
    assert letters and all(len(letter) == 1 and letter.isalpha() for letter in letters)
    given = {letter.upper(): letter for letter in letters}
    text = plain(reply)
    texts = option_words(options, list(given)) if options else []
    at = whole(text, texts)
    chosen = list(given)[at] if at is not None else _by_letter(text, list(given), texts)
    return given[chosen] if chosen in given else None


def _by_letter(text: str, letters: Sequence[str], texts: Sequence[Sequence[str]]) -> str | None:
    everything = [m for m in mentions(text, letters) if not _is_word_of_option(text, m, texts)]
    found = without_corrected(text, everything)
    for tier in (_stated(text, found), _head(found), found):
        if tier:
            left = settled(tier)
            agreed = len(left) == 1 and not _contradicted(text, tier, letters, texts)
            return left.pop() if agreed else None
    at = named(text, texts) if texts else None
    return None if at is None else letters[at]


def _stated(text: str, found: Sequence[Mention]) -> list[Mention]:
    return without_corrected(text, [mention for mention in found if mention.stated])


def _head(found: Sequence[Mention]) -> list[Mention]:
    """The letter that the reply begins with, unless it is the first of several labels: then the options are listed."""
    if not found or not found[0].head:
        return []
    head, *rest = found
    if head.asked and rest:
        return []
    return [head, *(m for m in rest if m.group == head.group or (m.label and not head.reasoned))]


def _is_word_of_option(text: str, mention: Mention, texts: Sequence[Sequence[str]]) -> bool:
    """Whether the letter is the first word of an option's text: `A dog barks` where an option says so."""
    longer = [n for n in begins(text, mention.start, texts) if len(texts[n]) > 1]
    return bool(longer)


def _contradicted(
    text: str, tier: Sequence[Mention], letters: Sequence[str], texts: Sequence[Sequence[str]]
) -> bool:
    """Whether a label is followed by the words of another option and not by its own: `A. Female`, where A is male."""
    for mention in tier:
        after = after_label(text, mention.end, texts)
        if after and mention.letter in letters and letters.index(mention.letter) not in after:
            return True
    return False
