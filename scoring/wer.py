"""Word error rate of transcripts, as published and as the field computes it.

Invariant: `text/wer` is a ratio of sums (errors over the words of the references, Whisper's normaliser on both sides);
`text/wer_utterance_mean` is a mean over utterances of the raw texts. They are never mixed up: the names say which.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from farm.checkpoints import local
from farm.types import Item, Reply, Score
from scoring.text import Held, Names, Settings, rater_of, score_all, unprefixed
from scoring.weights import fingerprint, missing


class WordErrors:
    """Word error rates against an item's `transcript`.

    `text/wer_utterance_mean` is EchoMind's released recipe: words split at spaces, case and punctuation count, the mean
    over utterances. `text/wer` is what others report: corpus level, after the English normaliser of Whisper. An empty
    reply misses every word.

    Args:
        spellings: checkpoint of Whisper's table of spellings, `{path, made_by}`.
        prefixes: what models are told to put before a transcript; it is taken off first.
        device: unused.
    """

    version = "1"
    names = ("text/wer", "text/wer_utterance_mean")

    def __init__(self, *, spellings: Settings, prefixes: Sequence[str] = (), device: str = "cpu") -> None:
        settings = {"spellings": {"checkpoint": spellings}}
        self._missing = missing(settings)
        self._names = Names(names=self.names, rater=rater_of("jiwer", fingerprint(settings)))
        self._normalise = None if self._missing else normaliser(spellings)
        self._prefixes = tuple(prefixes)

    @classmethod
    def weights_fingerprint(cls, config: Settings) -> str:
        """Of the table of spellings; empty where it is missing."""
        return fingerprint({"spellings": {"checkpoint": config["spellings"]}})

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """Two scores for each reply."""
        return score_all(heard, self._names, "transcript", lambda held: [self._one(h) for h in held])

    def _one(self, held: Held) -> list[Score]:
        said, gold = unprefixed(held.said, self._prefixes), held.gold[0]
        errors, words = counted(gold, said)
        raw = self._names.number("text/wer_utterance_mean", errors / words)
        return [self._normalised(gold, said), raw]

    def _normalised(self, gold: str, said: str) -> Score:
        if self._normalise is None:
            return self._names.score("text/wer", status="unavailable", reason=self._missing)
        errors, words = counted(self._normalise(gold), self._normalise(said))
        return self._names.score("text/wer", numerator=float(errors), denominator=float(words))


def counted(gold: str, said: str) -> tuple[int, int]:
    """Insertions, deletions and substitutions that lead from one text to the other; words of the first."""
    import jiwer

    if not gold.split():
        return len(said.split()), 0
    found = jiwer.process_words(gold, said)
    return found.insertions + found.deletions + found.substitutions, len(gold.split())


def normaliser(spellings: Settings) -> Callable[[str], str]:
    """Whisper's English normaliser on a table of spellings."""
    from transformers.models.whisper.english_normalizer import EnglishTextNormalizer

    table = json.loads(local(spellings).read_text(encoding="utf-8"))
    normaliser: Callable[[str], str] = EnglishTextNormalizer(table)
    return normaliser
