"""UTMOS with random numbers in the published network's shapes: the loader is strict and says what it loaded."""

import hashlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from scoring.quality import Utmos
from scoring.utmos import MEANINGLESS, RANDOM_MARK, UNUSED
from tests.scoring import clips

State = dict[str, Any]


@pytest.fixture(scope="module")
def state() -> State:
    import torch
    from utmos_pytorch.utmos_torch import UTMOSModel

    torch.manual_seed(0)
    return dict(UTMOSModel().state_dict())


@pytest.fixture
def saved(tmp_path: Path, state: State) -> Iterator[Callable[..., str]]:
    """Saves the state dict with changes (None removes a key); returns its path."""
    path = tmp_path / "utmos_state_dict.pt"

    def save(**changes: Any) -> str:
        import torch

        changed = state | {key.replace("__", "."): value for key, value in changes.items()}
        torch.save({key: value for key, value in changed.items() if value is not None}, path)
        return str(path)

    yield save
    path.unlink(missing_ok=True)


def trained(state: State) -> State:
    """Layer norms moved as training moves them."""
    return {
        key.replace(".", "__"): value + 0.01 for key, value in state.items() if key.endswith("norm.weight")
    }


def test_missing_weights_are_unavailable_with_the_command(tmp_path: Path) -> None:
    weights = str(tmp_path / "utmos_state_dict.pt")
    for score in chain(*Utmos(weights).score(list(clips.ODD.values()))):
        assert score.status == "unavailable" and "python scripts/fetch_weights.py utmos" in score.reason
    assert Utmos.weights_fingerprint({"weights": weights}) == ""


def test_odd_speech_gets_a_score_or_a_reason_and_the_label_says_random(saved: Callable[..., str]) -> None:
    path = saved()
    scores = Utmos(path).score(list(clips.ODD.values()))
    clips.check_odd_speech(scores, Utmos.names)
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    assert Utmos.weights_fingerprint({"weights": path}) == digest
    for score in chain(*scores):
        assert score.rater == f"utmos22_strong@{digest[:7]}"
        assert score.label == (MEANINGLESS if score.status == "ok" else None)


def test_trained_weights_have_no_label_unless_they_are_marked(
    saved: Callable[..., str], state: State
) -> None:
    import torch

    heard = [clips.reply(clips.voice(1))]
    [[plain]] = Utmos(saved(**trained(state))).score(heard)
    [[marked]] = Utmos(saved(**trained(state), **{RANDOM_MARK: torch.ones(1)})).score(heard)
    assert (plain.status, plain.label) == ("ok", None)
    assert (marked.value, marked.label) == (plain.value, MEANINGLESS)
    assert marked.reason == MEANINGLESS, "the leaderboard's footnote comes from the reason"


def test_the_published_file_may_hold_the_mask_that_only_training_uses(saved: Callable[..., str]) -> None:
    import torch

    [[score]] = Utmos(saved(**{UNUSED: torch.ones(768)})).score([clips.reply(clips.voice(1))])
    assert score.status == "ok"


@pytest.mark.parametrize("what", ["missing", "unknown", "another shape"])
def test_loading_is_strict(saved: Callable[..., str], state: State, what: str) -> None:
    import torch

    key = "output_layers.1.net.3.bias"
    assert key in state
    change = {
        "missing": {key: None},
        "unknown": {"extra": torch.ones(1)},
        "another shape": {key: torch.ones(2)},
    }
    [[score]] = Utmos(saved(**change[what])).score([clips.reply(clips.voice(1))])
    assert score.status == "unavailable" and "is not the UTMOS22 strong learner" in score.reason


def test_no_code_in_a_file_of_weights_is_run(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "utmos_state_dict.pt"
    torch.save({"key": Path("/")}, path)
    [[score]] = Utmos(str(path)).score([clips.reply(clips.voice(1))])
    assert score.status == "unavailable" and "UnpicklingError" in score.reason


def test_values_are_those_of_the_package_and_windows_only_begin_beyond_the_limit(
    saved: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from utmos_pytorch import UTMOSScoreTorch

    monkeypatch.setattr("scoring.utmos.MAX_SECONDS", 3.0)
    path = saved()
    samples = clips.voice(3, 16000).astype("float32")
    expected = UTMOSScoreTorch(path).score(torch.from_numpy(samples)).item()
    long = clips.reply(clips.voice(3.1, 8000), 8000)
    [[short], [windowed]] = Utmos(path).score([clips.reply(samples, 16000), long])
    assert short.value == pytest.approx(expected, abs=1e-4)
    assert windowed.label == f"{MEANINGLESS}; mean of 2 windows"


def test_a_hub_repository_is_read_from_the_hubs_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    hub = "owner/name@main"
    [[score]] = Utmos(hub).score([clips.reply(clips.voice(1))])
    assert "hf download owner/name utmos_state_dict.pt --revision main" in score.reason
    cached = tmp_path / "models--owner--name"
    for folder in ("refs", "snapshots/abc"):
        (cached / folder).mkdir(parents=True)
    (cached / "refs/main").write_text("abc")
    (cached / "snapshots/abc/utmos_state_dict.pt").write_bytes(b"weights")
    expected = hashlib.sha256(b"weights").hexdigest()
    assert Utmos.weights_fingerprint({"weights": hub}) == expected
