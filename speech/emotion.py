"""Which emotion is heard in speech: emotion2vec+ (Ma et al., arXiv:2312.15185) by FunASR.

Invariant: clips of unequal length never share a batch: the model's padding shifts its scores. Labels come out in one
vocabulary, whatever language the checkpoint names them in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import audio
from farm.checkpoints import source
from farm.types import Failure, Waveform

SAMPLE_RATE_HZ = 16_000
UNKNOWN = "unknown"
LABELS: Mapping[str, str] = {
    "angry": "angry",
    "disgusted": "disgust",
    "disgust": "disgust",
    "fearful": "fear",
    "fear": "fear",
    "happy": "happy",
    "neutral": "neutral",
    "other": "other",
    "sad": "sad",
    "surprised": "surprise",
    "surprise": "surprise",
    "<unk>": UNKNOWN,
    "unk": UNKNOWN,
}
"""A checkpoint's or a data set's word -> ours, which are EchoMind's short names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Emotion:
    """What was heard in one clip."""

    label: str
    """One of the values of `LABELS`."""
    score: float
    """Of the label, 0 to 1."""


def label(word: str) -> str:
    """Our label for a checkpoint's word: `生气/angry`, `Angry` and `angry` are `angry`.

    Raises:
        ValueError: a word that is none of `LABELS`.
    """
    plain = word.rsplit("/", 1)[-1].strip().lower()
    if plain not in LABELS:
        raise ValueError(f"emotion {word!r}: none of {', '.join(LABELS)}")
    return LABELS[plain]


class Emotion2Vec:
    """One emotion2vec+ checkpoint.

    Args:
        checkpoint: A folder (`path`), or `repo` and `revision` on the Hugging Face hub.
        device: `cpu` or `cuda`.

    Raises:
        ValueError: funasr is not installed, or no checkpoint lies there.
    """

    version = "1"

    def __init__(self, *, checkpoint: Mapping[str, Any], device: str = "cpu") -> None:
        try:
            from funasr import AutoModel
        except ImportError as error:
            raise ValueError("emotion2vec+ needs funasr: pip install funasr") from error
        name, revision = source(checkpoint)
        where = {} if Path(name).exists() else {"hub": "hf", "model_revision": revision}
        self._model = AutoModel(model=name, device=device, disable_update=True, **where)

    def recognise(self, waveforms: Sequence[Waveform]) -> list[Emotion | Failure]:
        """The likeliest emotion of each clip, in order."""
        clips = [audio.resample(w, SAMPLE_RATE_HZ).samples for w in waveforms]
        order = sorted(range(len(clips)), key=lambda index: len(clips[index]))
        found: dict[int, Emotion | Failure] = {}
        for _, group in groupby(order, key=lambda index: len(clips[index])):
            indices = list(group)
            answers = self._model.generate(
                input=[clips[i] for i in indices], granularity="utterance", extract_embedding=False
            )
            found.update(zip(indices, map(likeliest, answers), strict=True))
        return [found[index] for index in range(len(clips))]


def likeliest(answer: Mapping[str, Any]) -> Emotion | Failure:
    """The best label of one answer of FunASR."""
    scores, words = answer["scores"], answer["labels"]
    best = max(range(len(words)), key=lambda index: scores[index])
    try:
        return Emotion(label=label(words[best]), score=float(scores[best]))
    except ValueError as error:
        return Failure(kind="model_error", message=str(error))
