"""UTMOS: naturalness of speech by the published UTMOS22 strong learner.

Invariant: nothing is ever downloaded here, and no weight is left at random in silence: every parameter comes from the
file, or the scores are `unavailable`.
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
    at_rate,
    judge_windows,
    not_weights,
    package_folder,
    score_each,
)

RATE_HZ = 16000
MAX_SECONDS = 30.0
"""The network attends over all of a reply at once: beyond this its memory passes 2 GB."""
FILE = "utmos_state_dict.pt"
FETCH = "python scripts/fetch_weights.py utmos"
RANDOM_MARK = "random_weights"
"""A state dict that has this key holds random numbers, made to test the loader."""
UNUSED = "feature_extractors.0.ssl_model.mask_emb"
"""The one published parameter that scoring never uses: it masks frames while wav2vec2 is trained."""
MEANINGLESS = "random weights: meaningless"


class Utmos:
    """UTMOS22 strong learner (Saeki et al., Interspeech 2022): a score of about 1 to 5, higher is better, at 16 kHz.

    The network is the package `utmos-pytorch`, without fairseq. Speech longer than 30 s is scored as the mean over
    equal windows and says so in its label. Where the weights are random numbers (marked as such, or never trained) the
    label says that the score is meaningless.
    """

    version = "1"
    names = ("quality/utmos",)

    def __init__(self, weights: str, device: str = "cpu") -> None:
        """Loads the network, or notes why it cannot.

        Args:
            weights: path of `utmos_state_dict.pt`, or a hub id, `owner/name` or `owner/name@revision`, whose file is
                in the hub's cache.
            device: where the network runs: `cpu`, `cuda`.
        """
        path = _find(weights)
        rater = f"utmos22_strong@{file_digest(path)[:7]}" if path else "utmos22_strong"
        self._scale = Scale(names=self.names, rater=rater)
        self._judge = _load(path, device) if path else _missing(weights)

    @classmethod
    def weights_fingerprint(cls, config: Mapping[str, Any]) -> str:
        """SHA-256 of the configured weights, empty where there are none."""
        path = _find(config["weights"])
        return file_digest(path) if path else ""

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """One score for each reply."""
        return score_each(heard, self._scale, self._judge)


def _is_hub_id(weights: str) -> bool:
    return weights.count("/") == 1 and not weights.endswith(".pt") and weights[0] not in "/.~"


def _find(weights: str) -> Path | None:
    path = Path(weights).expanduser()
    if path.is_file():
        return path
    if not _is_hub_id(weights):
        return None
    from huggingface_hub import try_to_load_from_cache

    repository, _, revision = weights.partition("@")
    cached = try_to_load_from_cache(repository, FILE, revision=revision or None)
    return Path(cached) if isinstance(cached, str) else None


def _missing(weights: str) -> str:
    repository, _, revision = weights.partition("@")
    if not _is_hub_id(weights):
        return f"no UTMOS weights at {weights!r}: {FETCH}"
    download = f"hf download {repository} {FILE}" + (f" --revision {revision}" if revision else "")
    return f"no {FILE} of {weights} in the hub's cache: {download}"


def _load(path: Path, device: str) -> Callable[[Waveform], Verdict] | str:
    """A judge with these weights, or why they are none."""
    if package_folder("utmos_pytorch") is None:
        return "no UTMOS network: pip install utmos-pytorch"
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        label = MEANINGLESS if _is_random(state) else None
        network = _network({k: v for k, v in state.items() if k not in (RANDOM_MARK, UNUSED)}, device)
    except UNLOADABLE as error:
        return not_weights(path, "the UTMOS22 strong learner", error, FETCH)

    def judge_window(speech: Waveform) -> list[float]:
        return [float(network.score(torch.from_numpy(speech.samples).to(device)))]

    def judge(speech: Waveform) -> Verdict:
        verdict = judge_windows(at_rate(speech, RATE_HZ), MAX_SECONDS, judge_window)
        notes = [note for note in (label, verdict.label) if note]
        return Verdict(values=verdict.values, label="; ".join(notes) or None, warning=label or "")

    return judge


def _network(state: Mapping[str, Any], device: str) -> Any:
    """The package's scorer with every parameter from `state`.

    Raises:
        RuntimeError: a parameter is missing, unknown or of another shape.
    """
    from torch.nn import Module
    from utmos_pytorch import UTMOSScoreTorch
    from utmos_pytorch.utmos_torch import UTMOSModel

    class Strict(UTMOSScoreTorch):  # type: ignore[misc]
        """The package skips parameters that it does not find."""

        def __init__(self) -> None:
            Module.__init__(self)
            self.device = device
            self.model = UTMOSModel()
            self.model.load_state_dict(state, strict=True)

    return Strict().to(device).eval()


def _is_random(state: Mapping[str, Any]) -> bool:
    """Marked as random, or never trained: training moves layer norms away from one."""
    norms = [value for key, value in state.items() if key.endswith("layer_norm.weight")]
    return RANDOM_MARK in state or (bool(norms) and all(bool((norm == 1).all()) for norm in norms))
