"""Words that a reply shares with reference replies: BLEU, ROUGE-L, METEOR, by the libraries and settings published.

EchoMind's released functions (src/eval-result/evaluation_metric.py) hold a reply against one reference; its data has
five for each voice. So each metric is there twice: over all references, and `_first` against the first alone.

Invariant: every value is finite and 0 for an empty reply; BLEU is on a scale to 100, the others to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from farm.checkpoints import local
from farm.types import Item, Reply, Score
from scoring.text import Held, Names, Settings, rater_of, score_all
from scoring.weights import fingerprint, missing


class Overlap:
    """BLEU by sentence and corpus, ROUGE-L.

    `text/bleu_sentence_mean`: NLTK's sentence BLEU, 4-grams, smoothing method 1, lower case, NLTK's words (published).
    `text/bleu_corpus`: sacreBLEU's counts (13a), summed over the cell. `text/rouge_l`: F of rouge-score, no stemmer,
    the best of all references.

    Args:
        words: checkpoint of NLTK's Punkt model, without which it finds no sentences: `{path, made_by}`.
        device: unused.
    """

    version = "1"
    names = (
        "text/bleu_sentence_mean",
        "text/bleu_corpus",
        "text/rouge_l",
        "text/bleu_sentence_mean_first",
        "text/rouge_l_first",
    )

    def __init__(self, *, words: Settings, device: str = "cpu") -> None:
        settings = {"words": {"checkpoint": words}}
        self._missing = missing(settings)
        self._names = Names(names=self.names, rater=rater_of("overlap", fingerprint(settings)))
        if not self._missing:
            know_folder(local(words))
            self._load()

    @classmethod
    def weights_fingerprint(cls, config: Settings) -> str:
        """Of the Punkt model; empty where it is missing."""
        return fingerprint({"words": {"checkpoint": config["words"]}})

    def _load(self) -> None:
        from nltk.translate.bleu_score import SmoothingFunction
        from rouge_score.rouge_scorer import RougeScorer
        from sacrebleu.metrics.bleu import BLEU

        self._smoothing = SmoothingFunction().method1
        self._rouge = RougeScorer(["rougeL"])
        self._bleu = BLEU(effective_order=True)

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """Five scores for each reply."""
        if self._missing:
            return [self._names.without("unavailable", self._missing) for _ in heard]
        return score_all(heard, self._names, "references", lambda held: [self._one(h) for h in held])

    def _one(self, held: Held) -> list[Score]:
        gold, first = held.gold, held.gold[:1]
        numbers = [
            ("text/bleu_sentence_mean", self._sentence_bleu(held.said, gold)),
            ("text/rouge_l", self._rouge_l(held.said, gold)),
            ("text/bleu_sentence_mean_first", self._sentence_bleu(held.said, first)),
            ("text/rouge_l_first", self._rouge_l(held.said, first)),
        ]
        scores = [self._names.number(name, value) for name, value in numbers]
        return [scores[0], self._corpus_bleu(held.said, gold), *scores[1:]]

    def _sentence_bleu(self, said: str, gold: Sequence[str]) -> float:
        from nltk.tokenize import word_tokenize
        from nltk.translate.bleu_score import sentence_bleu

        if not said:
            return 0.0
        references = [word_tokenize(text.lower()) for text in gold]
        return 100 * float(
            sentence_bleu(references, word_tokenize(said.lower()), smoothing_function=self._smoothing)
        )

    def _corpus_bleu(self, said: str, gold: Sequence[str]) -> Score:
        """Its counts are the label, out of which the cell's value is made; its own value is the sentence's."""
        found = self._bleu.sentence_score(said, list(gold))
        counts = (*found.counts, *found.totals, found.sys_len, found.ref_len)
        return self._names.score(
            "text/bleu_corpus", value=float(found.score), label=" ".join(str(int(count)) for count in counts)
        )

    def _rouge_l(self, said: str, gold: Sequence[str]) -> float:
        if not said:
            return 0.0
        return max(float(self._rouge.score(text, said)["rougeL"].fmeasure) for text in gold)


class Meteor:
    """METEOR by NLTK on lower-case words split at spaces (published): exact, stem and WordNet matches.

    Args:
        wordnet: checkpoint of WordNet in NLTK's layout: `{path, made_by}`.
        device: unused.
    """

    version = "1"
    names = ("text/meteor", "text/meteor_first")

    def __init__(self, *, wordnet: Settings, device: str = "cpu") -> None:
        settings = {"wordnet": {"checkpoint": wordnet}}
        self._missing = missing(settings)
        self._names = Names(names=self.names, rater=rater_of("meteor", fingerprint(settings)))
        if not self._missing:
            know_folder(local(wordnet))
            # WordNet is read when it is first asked, which takes seconds.
            meteor("the dog", ["the hound"])

    @classmethod
    def weights_fingerprint(cls, config: Settings) -> str:
        """Of WordNet; empty where it is missing."""
        return fingerprint({"wordnet": {"checkpoint": config["wordnet"]}})

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """Two scores for each reply."""
        if self._missing:
            return [self._names.without("unavailable", self._missing) for _ in heard]
        return score_all(heard, self._names, "references", lambda held: [self._one(h) for h in held])

    def _one(self, held: Held) -> list[Score]:
        return [
            self._names.number("text/meteor", meteor(held.said, held.gold)),
            self._names.number("text/meteor_first", meteor(held.said, held.gold[:1])),
        ]


def meteor(said: str, gold: Sequence[str]) -> float:
    """The best of all references; 0 for an empty reply."""
    from nltk.translate.meteor_score import meteor_score

    if not said.split():
        return 0.0
    return float(meteor_score([text.lower().split() for text in gold], said.lower().split()))


def know_folder(folder: Path) -> None:
    """Lets NLTK find data in a folder before it looks anywhere else."""
    import nltk.data

    paths: list[Any] = nltk.data.path
    if str(folder) not in paths:
        paths.insert(0, str(folder))
