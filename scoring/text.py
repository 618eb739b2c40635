"""What the text scorers share: which text of a reply is held against which text of its gold, and what else is said.

| scorer | metrics, `text/...` | against | weights |
| --- | --- | --- | --- |
| `scoring.wer.WordErrors` | `wer`, `wer_utterance_mean` | the transcript | Whisper's spellings |
| `scoring.semsim.SemSim` | `semsim` | the transcript | a sentence encoder |
| `scoring.overlap.Overlap` | `bleu_sentence_mean`, `bleu_corpus`, `rouge_l` | the references | NLTK's Punkt model |
| `scoring.overlap.Meteor` | `meteor` | the references | WordNet |
| `scoring.bertscore.BertScore` | `bertscore_f1`, `bertscore_f1_rescaled` | the references | a BERT |

References follow the voice that was heard (benchmarks/echomind_gold.py). A plain name is over all references of an item
(five in EchoMind), `_first` is against the first alone, which is what the released functions take.

Invariant: one score for each reply and name; an empty reply has the worst value of every metric and is never left out;
a reply without text is `not_applicable`, an item without gold or a scorer without weights `unavailable`; no NaN.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farm.types import Item, Reply, Score, ScoreStatus

_THINKING = re.compile(
    r"<(think|thinking|thought|reasoning|reflection|scratchpad|analysis)\b[^<>]*>.*?(?:</\1\s*>|\Z)"
    r"|<\|begin_of_thought\|>.*?(?:<\|end_of_thought\|>|\Z)"
    r"|◁think▷.*?(?:◁/think▷|\Z)"
    r"|\[THINK\].*?(?:\[/THINK\]|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_THOUGHT_BEFORE = re.compile(
    r"\A.*(?:</(?:think|thinking|thought|reasoning)\s*>|◁/think▷|\[/THINK\])", re.DOTALL | re.IGNORECASE
)
"""A template that opens the block itself leaves only its end in the reply."""


def without_thinking(text: str) -> str:
    """What a reply says when its thinking is over; empty where it never is."""
    return _THOUGHT_BEFORE.sub("", _THINKING.sub("\n", text)).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A reply's text, held against its gold."""

    said: str
    """Without thinking; may be empty."""
    gold: tuple[str, ...]
    """At least one text, none of them empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The scores that a text scorer gives and who gives them."""

    names: tuple[str, ...]
    rater: str

    def without(self, status: ScoreStatus, reason: str) -> list[Score]:
        """One score without a value for each name."""
        return [self.score(name, status=status, reason=reason) for name in self.names]

    def score(self, name: str, **fields: Any) -> Score:
        """One score of this rater."""
        return Score(name=name, rater=self.rater, rater_kind="program", **fields)

    def number(self, name: str, value: float, note: str = "") -> Score:
        """A score with a value; `failed` where it is no finite number."""
        if not math.isfinite(value):
            return self.score(name, status="failed", reason=f"{self.rater} gave {value}")
        return self.score(name, value=float(value), reason=note)


def score_all(
    heard: Sequence[tuple[Item, Reply]],
    names: Names,
    gold: str,
    judge: Callable[[Sequence[Held]], Sequence[list[Score]]],
) -> list[list[Score]]:
    """Scores a batch: those replies that can be held against something, at once.

    Args:
        heard: items and what was answered to them.
        names: of the scores.
        gold: what of an item's gold: `transcript`, `references`.
        judge: gives for each pair, in order, one score for each name.

    Returns:
        For each reply, in order, one score for each name.
    """
    held = [_held(item, reply, names, gold) for item, reply in heard]
    scores = iter(judge([h for h in held if isinstance(h, Held)]))
    return [next(scores) if isinstance(h, Held) else h for h in held]


def _held(item: Item, reply: Reply, names: Names, gold: str) -> Held | list[Score]:
    if reply.failure is not None:
        return names.without("failed", f"no reply: {reply.failure.kind}")
    if reply.text is None:
        return names.without("not_applicable", "the reply has no text")
    texts = gold_texts(item, gold)
    if not texts:
        return names.without("unavailable", f"the item has no {gold} for the voice that was heard")
    return Held(said=without_thinking(reply.text), gold=texts)


def gold_texts(item: Item, gold: str) -> tuple[str, ...]:
    """The texts of one field of an item's gold."""
    value = item.gold.get(gold) or ()
    several = (value,) if isinstance(value, str) else tuple(value)
    return tuple(text for text in several if text.strip())


def unprefixed(text: str, prefixes: Sequence[str]) -> str:
    """A text without what the model was told to put before it, and without the marks around the rest.

    Args:
        text: `The audio text is 'Good morning.'`
        prefixes: `The audio text is`; upper and lower case are one.
    """
    for prefix in prefixes:
        if text.casefold().startswith(prefix.casefold()):
            rest = text[len(prefix) :].lstrip(" :\n\t")
            return re.sub(r"\A[\"'“‘<\[](.*?)[\"'”’>\]]\.?\Z", r"\1", rest, flags=re.DOTALL).strip()
    return text


def rater_of(name: str, fingerprint: str) -> str:
    """`meteor@9f3c1ab`."""
    return f"{name}@{fingerprint[:7]}" if fingerprint else name


Settings = Mapping[str, Any]
