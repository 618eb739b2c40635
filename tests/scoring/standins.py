"""Stand-ins for recognisers whose weights cannot be had here: what they hear is told by the clip's level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from farm.types import Failure, Waveform
from speech.emotion import Emotion


class Level:
    """Hears `happy` in loud speech, `sad` in soft speech, nothing it knows in very soft speech; a clip of NaN fails."""

    version = "1"

    def __init__(self, *, checkpoint: Mapping[str, Any], device: str = "cpu") -> None:
        self.batches: list[int] = []

    def recognise(self, waveforms: Sequence[Waveform]) -> list[Emotion | Failure]:
        return [self._one(float(abs(w.samples).max())) for w in waveforms]

    def _one(self, level: float) -> Emotion | Failure:
        if level != level:
            return Failure(kind="model_error", message="no number")
        return Emotion(label="happy" if level > 0.5 else "sad" if level > 0.01 else "unknown", score=1.0)
