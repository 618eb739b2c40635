"""What a listener notices in a reply's speech: does it say what the text says, how fast, and how does it end?

Beside EchoMind's own metrics; no published number stands beside these. Invariant: one score under each name for every
reply; word errors are counted as in `scoring/wer.py`, with what the model wrote as the reference and what a recogniser
hears in its speech as the hypothesis, so that a recogniser's own errors are in it: compare models, not values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from farm.types import Failure, Item, Reply, Score, ScoreStatus, Waveform
from scoring.reply_speech import MIN_SECONDS
from scoring.text import without_thinking
from scoring.weights import fingerprint, missing
from scoring.wer import counted, normaliser
from speech.types import Transcript

FRAME_S = 0.02
SILENCE_DB = -40.0
"""Below the loudest frame: what is quieter is silence."""
ENDING_S = 0.05
"""The end that is looked at: speech that is cut off is about as loud there as it is on the mean."""
ENDING_LEVEL = 0.5
"""Of the mean level, 6 dB: a word that ends by itself fades further."""
NAMES = ("speech/text_wer", "speech/words_per_s", "speech/silence_share", "speech/cut_off")


class Spoken:
    """Agreement of a reply's speech with its text, rate, silence, and whether it breaks off.

    `speech/text_wer`: word errors of the recognised speech against the text the model wrote. `speech/words_per_s`: of
    what was recognised, over the time without leading and trailing silence. `speech/silence_share`: of the whole
    reply, pauses included. `speech/cut_off`: 1 where the speech ends at full level.

    Args:
        recogniser: `_target_` and arguments of a `speech.types.Recogniser`.
        spellings: checkpoint of Whisper's table of spellings, `{path, made_by}`.
        device: where the recogniser runs.
    """

    version = "1"

    def __init__(
        self, *, recogniser: Mapping[str, Any], spellings: Mapping[str, Any], device: str = "cpu"
    ) -> None:
        from hydra.utils import instantiate

        settings = {"recogniser": recogniser, "spellings": {"checkpoint": spellings}}
        self._missing = missing(settings)
        name = recogniser["_target_"].rsplit(".", 1)[-1]
        self._rater = f"{name}@{fingerprint(settings)[:7]}" if not self._missing else name
        self._recogniser: Any = None
        if not self._missing:
            self._recogniser = instantiate(dict(recogniser), device=device, _convert_="all")
            self._normalise = normaliser(spellings)

    @classmethod
    def weights_fingerprint(cls, config: Mapping[str, Any]) -> str:
        """Of the recogniser and the table of spellings; empty where one is missing."""
        return fingerprint(
            {"recogniser": config["recogniser"], "spellings": {"checkpoint": config["spellings"]}}
        )

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """Four scores for each reply."""
        if self._missing:
            return [self._without("unavailable", self._missing) for _ in heard]
        spoken = [reply.speech for _, reply in heard if reply.speech is not None]
        found = iter(self._recogniser.transcribe(spoken) if spoken else [])
        return [self._one(reply, next(found) if reply.speech is not None else None) for _, reply in heard]

    def _one(self, reply: Reply, found: Transcript | Failure | None) -> list[Score]:
        speech = reply.speech
        if speech is None or found is None:
            return self._without("not_applicable", "the reply has no speech")
        if isinstance(found, Failure):
            return self._without("failed", f"{found.kind}: {found.message}")
        if speech.seconds < MIN_SECONDS:
            return self._without(
                "not_applicable", f"{speech.seconds:.2f} s of speech, shorter than {MIN_SECONDS} s"
            )
        loud = active(speech)
        return [self._agreement(reply.text, found.text), *self._delivery(speech, loud, found.text)]

    def _agreement(self, text: str | None, heard: str) -> Score:
        wrote = self._normalise(without_thinking(text or ""))
        if not wrote.split():
            return self._score("speech/text_wer", status="not_applicable", reason="the reply has no text")
        errors, words = counted(wrote, self._normalise(heard))
        return self._score("speech/text_wer", numerator=float(errors), denominator=float(words), label=heard)

    def _delivery(self, speech: Waveform, loud: npt.NDArray[np.bool_], heard: str) -> list[Score]:
        if not loud.any():
            reason = "silent throughout"
            silent = self._score("speech/silence_share", value=1.0)
            rate, end = (self._score(n, status="not_applicable", reason=reason) for n in (NAMES[1], NAMES[3]))
            return [rate, silent, end]
        first, last = int(np.argmax(loud)), len(loud) - int(np.argmax(loud[::-1]))
        spoken_s = max(FRAME_S, (last - first) * FRAME_S)
        return [
            self._score("speech/words_per_s", value=len(heard.split()) / spoken_s),
            self._score("speech/silence_share", value=float(1 - loud.mean())),
            self._score("speech/cut_off", value=float(cut_off(speech))),
        ]

    def _score(self, name: str, **values: Any) -> Score:
        return Score(name=name, rater=self._rater, **values)

    def _without(self, status: ScoreStatus, reason: str) -> list[Score]:
        return [self._score(name, status=status, reason=reason) for name in NAMES]


def levels(speech: Waveform, frame_s: float = FRAME_S) -> npt.NDArray[np.float64]:
    """Root mean square of each whole frame, shape (frames,)."""
    size = max(1, round(frame_s * speech.sample_rate_hz))
    whole = len(speech.samples) // size * size
    frames = speech.samples[:whole].reshape(-1, size).astype(np.float64)
    rms: npt.NDArray[np.float64] = np.sqrt((frames**2).mean(axis=1))
    return rms


def active(speech: Waveform) -> npt.NDArray[np.bool_]:
    """Which frames are not silence, against the loudest one; none where all is digital silence."""
    rms = levels(speech)
    loudest = rms.max(initial=0.0)
    if loudest < 1e-4:
        return np.zeros(len(rms), dtype=np.bool_)
    heard: npt.NDArray[np.bool_] = rms > loudest * 10 ** (SILENCE_DB / 20)
    return heard


def cut_off(speech: Waveform) -> bool:
    """Whether the last moments are about as loud as the speech is on the mean."""
    rms = levels(speech)
    loud = rms[active(speech)]
    ending = levels(speech, ENDING_S)[-1]
    return bool(len(loud) and ending >= ENDING_LEVEL * loud.mean())
