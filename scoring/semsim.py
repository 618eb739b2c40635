"""How close a transcript's meaning is to what was said: the cosine of two sentence embeddings.

Invariant: the encoder is part of every score's identity; two encoders' values are not one scale, and a reader is told
when the encoder is not the published one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from farm.checkpoints import source
from farm.types import Item, Reply, Score
from scoring.text import Held, Names, Settings, rater_of, score_all, unprefixed
from scoring.weights import fingerprint, missing


class SemSim:
    """Cosine of the embeddings of a reply and an item's `transcript`, -1 to 1; 0 for an empty reply.

    EchoMind (arXiv 2510.22758, section 4.2.4.1) embeds with Qwen3-Embedding-0.6B.

    Args:
        checkpoint: a SentenceTransformer.
        note: what a reader of the metric must know of this encoder.
        prefixes: what models are told to put before a transcript; it is taken off first.
        device: where the encoder runs.
    """

    version = "1"
    names = ("text/semsim",)

    def __init__(
        self, *, checkpoint: Settings, note: str = "", prefixes: Sequence[str] = (), device: str = "cpu"
    ) -> None:
        settings = {"checkpoint": checkpoint}
        self._missing = missing(settings)
        self._names = Names(names=self.names, rater=rater_of("semsim", fingerprint(settings)))
        self._note, self._prefixes = note, tuple(prefixes)
        self._encoder = None if self._missing else _load(checkpoint, device)

    @classmethod
    def weights_fingerprint(cls, config: Settings) -> str:
        """Of the encoder; empty where it is missing."""
        return fingerprint({"checkpoint": config["checkpoint"]})

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """One score for each reply."""
        if self._missing:
            return [self._names.without("unavailable", self._missing) for _ in heard]
        return score_all(heard, self._names, "transcript", self._scored)

    def _scored(self, held: Sequence[Held]) -> list[list[Score]]:
        pairs = [(unprefixed(h.said, self._prefixes), h.gold[0]) for h in held]
        texts = list(dict.fromkeys(text for pair in pairs for text in pair if text))
        vectors = dict(zip(texts, self._vectors(texts), strict=True))
        values = [float(vectors[said] @ vectors[gold]) if said else 0.0 for said, gold in pairs]
        return [[self._names.number("text/semsim", value, self._note)] for value in values]

    def _vectors(self, texts: Sequence[str]) -> Any:
        """Shape (texts, dimensions), of length 1."""
        assert self._encoder is not None
        if not texts:
            return []
        return self._encoder.encode(
            list(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
        )


def _load(checkpoint: Settings, device: str) -> Any:
    from sentence_transformers import SentenceTransformer

    name, revision = source(checkpoint)
    return SentenceTransformer(name, revision=revision, device=device)
