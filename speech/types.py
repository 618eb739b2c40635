"""What recognisers and synthesisers are to everyone else: two small protocols.

Invariant: batch in, batch out, one result per input in order; a result that could not be had is a `Failure`. A failure
of kind `input_error` says that the input has nothing to hear or to say: the same input gives it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from farm.types import Failure, Waveform


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What a recogniser heard."""

    text: str
    """Stripped; empty where it heard no speech."""


class Recogniser(Protocol):
    """Speech to text."""

    version: str
    """Bumped with every change that can change a transcript."""

    def transcribe(self, waveforms: Sequence[Waveform]) -> list[Transcript | Failure]:
        """Transcribes mono waveforms of any rate and length."""
        ...


class Synthesiser(Protocol):
    """Text to speech, the same samples for the same text in every process."""

    version: str
    """Bumped with every change that can change a sample."""
    sample_rate_hz: int

    def speak(self, texts: Sequence[str]) -> list[Waveform | Failure]:
        """Speaks texts of any length; a text without a single letter or digit is an `input_error`."""
        ...
