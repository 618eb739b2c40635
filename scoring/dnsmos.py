"""DNSMOS: quality of speech, of the speech alone, of the background, and overall."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from farm.digests import file_digest
from farm.ids import digest
from farm.types import Item, Reply, Score, Waveform
from scoring.reply_speech import Scale, Verdict, at_rate, package_folder, score_each, warm_up
from speech.onnx import session

RATE_HZ = 16000
FILES = ("sig_bak_ovr.onnx", "model_v8.onnx")
"""The P.835 network and the P.808 network."""


class Dnsmos:
    """DNSMOS P.835 (Reddy et al., ICASSP 2022) and P.808 (2021): scores from 1 to 5, higher is better, at 16 kHz.

    The package's own procedure: a clip shorter than 9.01 s is doubled until it is not, a longer one is the mean over
    windows of 9.01 s that begin a second apart (some are skipped where rounding leaves them a frame short), so that
    time grows with length, 0.4 s of one core a window, and memory does not. One thread: the same on every machine.
    """

    version = "1"
    names = ("quality/dnsmos_ovrl", "quality/dnsmos_sig", "quality/dnsmos_bak", "quality/dnsmos_p808")

    def __init__(self, device: str = "cpu") -> None:
        """Loads both networks, or notes that their package is missing.

        Args:
            device: where the networks run: `cpu`, `cuda`.
        """
        fingerprint = self.weights_fingerprint({})
        self._scale = Scale(names=self.names, rater=f"dnsmos@{fingerprint[:7]}" if fingerprint else "dnsmos")
        self._judge = _load(_files(), device) if fingerprint else "no DNSMOS weights: pip install speechmos"

    @classmethod
    def weights_fingerprint(cls, config: Mapping[str, Any]) -> str:
        """SHA-256 over both networks' digests, empty where the package is missing."""
        files = _files()
        return digest([file_digest(file) for file in files]) if files else ""

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """Four scores for each reply."""
        return score_each(heard, self._scale, self._judge)


def _files() -> list[Path]:
    folder = package_folder("speechmos")
    return [folder / "dnsmos_models" / name for name in FILES] if folder else []


def _load(files: Sequence[Path], device: str) -> Callable[[Waveform], Verdict]:
    from speechmos.dnsmos import DNSMOS

    primary, p808 = files
    procedure = DNSMOS(str(primary), str(p808))
    # The package opens its sessions on every core there is; a scorer has its share of them.
    procedure.onnx_sess = session(primary, device)
    procedure.p808_onnx_sess = session(p808, device)

    def judge(speech: Waveform) -> Verdict:
        found = procedure(at_rate(speech, RATE_HZ).samples, RATE_HZ, False)
        keys = ("ovrl_mos", "sig_mos", "bak_mos", "p808_mos")
        return Verdict(values=tuple(float(found[key]) for key in keys))

    warm_up(judge)
    return judge
