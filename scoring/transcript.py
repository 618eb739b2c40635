"""What a spoken answer says: a recogniser listens to the reply's speech, and the letter is read from its transcript.

The answer of VoxEval (arXiv 2501.04962): speech in, speech out, Whisper-large-v3 in between. Beside it stand the
published string match on the same transcript, and the text that a model wrote for what it said.

Invariant: never a guess, as in scoring/choice.py; silence has no words (speech/whisper.py asks no model about it), so
it is no answer. A reply that says nothing that can be read is not correct and stays in the denominator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from farm.types import Failure, Item, Reply, Score, ScoreStatus
from scoring.choice import parse_choice
from scoring.weights import fingerprint, missing
from speech.types import Recogniser, Transcript

NO_GOLD = "the item has no gold answer and options"


class SpokenChoice:
    """The letter that a reply's speech chose.

    `voxeval/accuracy_speech` is 1 or 0, its label the letter; `voxeval/accuracy_speech_final` the same of the last
    sentence that says a letter (of a chain of thought: its truncated answer); `voxeval/accuracy_strict` the published
    string match, its label the transcript; `voxeval/unparsed_speech` is 1 where no letter could be read.

    Args:
        recogniser: `_target_` and arguments of a `speech.types.Recogniser`.
        device: where it runs.
    """

    version = "1"
    names = (
        "voxeval/accuracy_speech",
        "voxeval/accuracy_speech_final",
        "voxeval/accuracy_strict",
        "voxeval/unparsed_speech",
    )

    def __init__(self, *, recogniser: Mapping[str, Any], device: str = "cpu") -> None:
        from hydra.utils import instantiate

        self._missing = missing(recogniser)
        weights = fingerprint(recogniser)
        name = recogniser["_target_"].rsplit(".", 1)[-1]
        self._rater = f"{name}@{weights[:7]}" if weights else name
        self._recogniser: Recogniser | None = (
            None if self._missing else instantiate(dict(recogniser), device=device, _convert_="all")
        )

    @classmethod
    def weights_fingerprint(cls, config: Mapping[str, Any]) -> str:
        """Of the recogniser's checkpoint; empty where it is missing."""
        return fingerprint(config["recogniser"])

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """Four scores for each reply."""
        if self._recogniser is None:
            return [_without(self.names, "unavailable", self._missing, self._rater) for _ in heard]
        spoken = [reply.speech for _, reply in heard if reply.speech is not None]
        transcripts = iter(self._recogniser.transcribe(spoken) if spoken else [])
        return [
            self._one(item, reply, next(transcripts) if reply.speech is not None else None)
            for item, reply in heard
        ]

    def _one(self, item: Item, reply: Reply, found: Transcript | Failure | None) -> list[Score]:
        refused = _refused(item, reply)
        if isinstance(found, Failure):
            refused = refused or ("failed", f"{found.kind}: {found.message}")
        if refused:
            return _without(self.names, *refused, self._rater)
        said = found.text if isinstance(found, Transcript) else ""
        answer = str(item.gold["answer"])
        strict = Score(
            name="voxeval/accuracy_strict",
            value=float(strict_match(said, answer, list(item.gold["options"]))),
            label=said,
            rater=self._rater,
        )
        return [*_read(item, said, "speech", self._rater), strict]


class WrittenChoice:
    """The letter that a reply's text chose, of models that write what they say.

    `voxeval/accuracy_text`, `voxeval/accuracy_text_final` and `voxeval/unparsed_text`, as of speech.
    """

    version = "1"
    names = ("voxeval/accuracy_text", "voxeval/accuracy_text_final", "voxeval/unparsed_text")

    @classmethod
    def weights_fingerprint(cls, config: Mapping[str, Any]) -> str:
        """There are none."""
        return ""

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """Three scores for each reply."""
        return [self._one(item, reply) for item, reply in heard]

    def _one(self, item: Item, reply: Reply) -> list[Score]:
        if refused := _refused(item, reply):
            return _without(self.names, *refused, "parse_choice")
        return _read(item, reply.text or "", "text", "parse_choice")


def strict_match(said: str, answer: str, letters: Sequence[str]) -> bool:
    """The published rule as we read it: the transcript has the right letter as a capital word of its own, and no other.

    The paper (section 4.1) says "string matching" and the release has no code for it. Spoken letters that a recogniser
    spells as words (`be`, `see`) do not match, which is what makes it strict; nor does a sentence that begins with the
    article `A` and names another letter.
    """
    found = {word for word in re.findall(r"\b[A-Z]\b", said) if word in letters}
    return found == {answer}


def unglued(said: str) -> str:
    """`B42` -> `B. 42`: recognisers write a letter and the number after it as one word."""
    return re.sub(r"\b([A-Z])(\d)", r"\1. \2", said)


def final_answer(said: str, choose: Callable[[str], str | None]) -> str | None:
    """The letter of the last sentence that has one: what is left of a chain of thought when it is cut to its answer."""
    for sentence in reversed(re.split(r"(?<=[.!?])\s+", said.strip())):
        if letter := choose(sentence):
            return letter
    return None


def _read(item: Item, said: str, where: str, rater: str) -> list[Score]:
    options = item.gold["options"]

    def choose(text: str) -> str | None:
        return parse_choice(unglued(text), list(options), list(options.values())) if text.strip() else None

    whole = choose(said)
    return [
        _accuracy(f"voxeval/accuracy_{where}", whole, item, said, rater),
        _accuracy(f"voxeval/accuracy_{where}_final", final_answer(said, choose), item, said, rater),
        Score(name=f"voxeval/unparsed_{where}", value=float(whole is None), rater=rater),
    ]


def _accuracy(name: str, letter: str | None, item: Item, said: str, rater: str) -> Score:
    if letter is None:
        reason = f"no one valid letter: {said[:200]!r}" if said else "nothing was said"
        return Score(name=name, status="unparsed", reason=reason, rater=rater)
    return Score(name=name, value=float(letter == item.gold["answer"]), label=letter, rater=rater)


def _refused(item: Item, reply: Reply) -> tuple[ScoreStatus, str] | None:
    if not item.gold.get("answer") or not item.gold.get("options"):
        return "unavailable", NO_GOLD
    return ("failed", f"no reply: {reply.failure.kind}") if reply.failure is not None else None


def _without(names: Sequence[str], status: ScoreStatus, reason: str, rater: str) -> list[Score]:
    return [Score(name=name, status=status, reason=reason, rater=rater) for name in names]
