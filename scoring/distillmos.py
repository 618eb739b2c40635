"""DistillMOS: overall speech quality, distilled from a wav2vec2 (XLS-R) teacher into a small network."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from farm.digests import file_digest
from farm.types import Item, Reply, Score, Waveform
from scoring.reply_speech import Scale, Verdict, at_rate, package_folder, score_each

RATE_HZ = 16000
WINDOWS_AT_ONCE = 4
"""Memory grows with the windows that are judged together; the package judges all of them (2.9 GB for 45 s)."""


class DistillMos:
    """DistillMOS v7 (Stahl and Gamper, ICASSP 2025): scores from 1 to 5, higher is better, at 16 kHz.

    As the package does it: the mean over windows of 7.68 s that begin at most a second apart, shorter speech padded
    with silence; here a few windows at a time, so that time grows with length and memory does not.
    """

    version = "1"
    names = ("quality/distillmos",)

    def __init__(self, device: str = "cpu") -> None:
        """Loads the network, or notes that its package is missing.

        Args:
            device: where the network runs: `cpu`, `cuda`.
        """
        path = _weights()
        rater = f"distillmos_v7@{file_digest(path)[:7]}" if path else "distillmos_v7"
        self._scale = Scale(names=self.names, rater=rater)
        missing = "no DistillMOS weights: pip install --no-deps distillmos xls-r-sqa"
        self._judge = _load(path, device) if path else missing

    @classmethod
    def weights_fingerprint(cls, config: Mapping[str, Any]) -> str:
        """SHA-256 of the package's weights, empty where it is missing."""
        path = _weights()
        return file_digest(path) if path else ""

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """One score for each reply."""
        return score_each(heard, self._scale, self._judge)


def _weights() -> Path | None:
    folder = package_folder("distillmos")
    installed = folder and package_folder("xls_r_sqa")
    return folder / "weights" / "distill_mos_v7.pt" if folder and installed else None


def _load(path: Path, device: str) -> Callable[[Waveform], Verdict]:
    import torch

    with _torchaudio_stand_in():
        from distillmos import sqa
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    # Not load_weights=True, which prints; not its segmenting, which judges all windows of a reply at once.
    network = sqa.ConvTransformerSQAModel(load_weights=False, segmenting_in_forward=False)
    network.load_state_dict(checkpoint["model"], strict=True)
    network.to(device).eval()

    def judge(speech: Waveform) -> Verdict:
        samples = at_rate(speech, RATE_HZ).samples
        windows = torch.from_numpy(_windows(samples, sqa.SEQ_LEN, sqa.MAX_HOP_LEN))
        with torch.inference_mode():
            batches = [network(batch.to(device)).cpu() for batch in torch.split(windows, WINDOWS_AT_ONCE)]
        return Verdict(values=(float(torch.cat(batches).mean()),))

    return judge


def _windows(samples: np.ndarray, length: int, max_hop: int) -> np.ndarray:
    """Shape (windows, length): the fewest evenly spaced windows that begin at most `max_hop` frames apart."""
    padded = np.pad(samples, (0, max(0, length - len(samples))))
    spare = len(padded) - length
    starts = np.linspace(0, spare, -(-spare // max_hop) + 1).astype(int)
    return np.stack([padded[start : start + length] for start in starts])


@contextmanager
def _torchaudio_stand_in() -> Iterator[None]:
    """Lets the package be imported without torchaudio, which only its command line uses."""
    before = sys.modules.get("torchaudio")
    sys.modules["torchaudio"] = before or ModuleType("torchaudio")
    try:
        yield
    finally:
        if before is None:
            del sys.modules["torchaudio"]
