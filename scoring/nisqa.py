"""NISQA v2: overall quality of speech and four dimensions of it.

Invariant: nothing is ever downloaded here; the weights (CC BY-NC-SA 4.0) are a file that the user fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from farm.digests import file_digest
from farm.types import Item, Reply, Score, Waveform
from scoring.reply_speech import (
    UNLOADABLE,
    Scale,
    Verdict,
    judge_windows,
    not_weights,
    score_each,
    warm_up,
)

FETCH = "python scripts/fetch_weights.py nisqa, or NISQA_WEIGHTS=path of nisqa.tar"
MAX_SECONDS = 50.0
"""1,300 segments of 40 ms are 52 s, a little less at rates whose 10 ms are no whole number of samples."""

Judge = Callable[[Waveform], Verdict]


class Nisqa:
    """NISQA v2 (Mittag et al., Interspeech 2021): predicted scores from 1 to 5, higher is better, for any rate.

    The network is torchmetrics' port, fed with the speech at its own rate and level. Speech longer than 50 s is scored
    as the mean over equal windows and says so in its label. The published file's SHA-256 begins with 7ec4cf9; the
    rater names the digest of the file that was used.
    """

    version = "1"
    names = (
        "quality/nisqa_mos",
        "quality/nisqa_noisiness",
        "quality/nisqa_discontinuity",
        "quality/nisqa_coloration",
        "quality/nisqa_loudness",
    )

    def __init__(self, weights: str, device: str = "cpu") -> None:
        """Loads the network, or notes why it cannot.

        Args:
            weights: path of the official `nisqa.tar`.
            device: `cpu`, the only one that the implementation has.

        Raises:
            ValueError: another device.
        """
        if device != "cpu":
            raise ValueError(f"Nisqa: device={device!r} is not one of: cpu")
        path = Path(weights).expanduser()
        found = path.is_file()
        rater = f"nisqa_v2@{file_digest(path)[:7]}" if found else "nisqa_v2"
        self._scale = Scale(names=self.names, rater=rater)
        self._judge = _load(path) if found else f"no NISQA weights at {weights!r}: {FETCH}"

    @classmethod
    def weights_fingerprint(cls, config: Mapping[str, Any]) -> str:
        """SHA-256 of the configured weights, empty where there are none."""
        path = Path(config["weights"]).expanduser()
        return file_digest(path) if path.is_file() else ""

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """Five scores for each reply."""
        return score_each(heard, self._scale, self._judge)


def _load(path: Path) -> Judge | str:
    """A judge with these weights, or why they are none."""
    import torch
    from torchmetrics.functional.audio import nisqa

    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        arguments = checkpoint["args"]
        network = nisqa._NISQADIM(arguments)
        network.load_state_dict(checkpoint["model_state_dict"], strict=True)
    except UNLOADABLE as error:
        return not_weights(path, "NISQA v2", error, FETCH)
    network.eval()

    def judge_window(speech: Waveform) -> list[float]:
        # The public function downloads what it does not find in its own folder: these are the steps that it takes.
        spectrogram = nisqa._get_librosa_melspec(speech.samples[None], speech.sample_rate_hz, arguments)
        segments, count = nisqa._segment_specs(torch.from_numpy(spectrogram), arguments)
        with torch.inference_mode():
            return [float(value) for value in network(segments, count.expand(1))[0]]

    warm_up(judge_window)
    return lambda speech: judge_windows(speech, MAX_SECONDS, judge_window)
