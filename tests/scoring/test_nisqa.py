import shutil
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from scoring.quality import Nisqa
from tests.scoring import clips
from tests.scoring.test_quality import nisqa_weights


def test_missing_weights_are_unavailable_with_the_command(tmp_path: Path) -> None:
    weights = str(tmp_path / "nisqa.tar")
    scores = Nisqa(weights).score(list(clips.ODD.values()))
    assert Nisqa.weights_fingerprint({"weights": weights}) == ""
    assert len(scores) == len(clips.ODD)
    for score in chain(*scores):
        assert score.status == "unavailable"
        assert "python scripts/fetch_weights.py nisqa" in score.reason and "NISQA_WEIGHTS" in score.reason


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", b"PK\x03\x04"])
def test_a_file_that_is_not_nisqa_is_unavailable_with_the_reason(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "nisqa.tar"
    path.write_bytes(content)
    [[score, *_]] = Nisqa(str(path)).score([clips.reply(clips.voice(1))])
    assert score.status == "unavailable" and "is not NISQA v2" in score.reason


def test_another_network_of_the_family_is_refused(tmp_path: Path) -> None:
    import torch

    checkpoint = torch.load(nisqa_weights(), map_location="cpu", weights_only=True)
    checkpoint["model_state_dict"].popitem()
    path = tmp_path / "nisqa.tar"
    torch.save(checkpoint, path)
    [[score, *_]] = Nisqa(str(path)).score([clips.reply(clips.voice(1))])
    assert score.status == "unavailable" and "Missing key" in score.reason


def test_other_weights_of_the_same_shape_are_named_in_the_rater(tmp_path: Path) -> None:
    import torch

    checkpoint = torch.load(nisqa_weights(), map_location="cpu", weights_only=True)
    torch.save(checkpoint, tmp_path / "own.tar")
    [[score, *_]] = Nisqa(str(tmp_path / "own.tar")).score([clips.reply(clips.voice(1))])
    assert score.status == "ok" and score.rater != "nisqa_v2@7ec4cf9"


def test_values_are_those_of_torchmetrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from torchmetrics.functional.audio import nisqa

    shutil.copy(nisqa_weights(), tmp_path / "nisqa.tar")
    monkeypatch.setattr(nisqa, "NISQA_DIR", str(tmp_path))
    samples = clips.voice(3).astype(np.float32)
    expected = nisqa.non_intrusive_speech_quality_assessment(torch.from_numpy(samples), 24000)
    found = clips.values(Nisqa(nisqa_weights()).score([clips.reply(samples)]))[0]
    assert np.allclose(found, expected.numpy(), atol=1e-5)


def test_only_speech_beyond_the_limit_is_scored_in_windows_and_says_so() -> None:
    scorer = Nisqa(nisqa_weights())
    lengths = [(8000, 49.9), (8099, 49.9), (22050, 49.9), (8000, 51), (8000, 101)]
    found = scorer.score([clips.reply(clips.voice(seconds, rate), rate) for rate, seconds in lengths])
    assert [scores[0].label for scores in found] == [
        None,
        None,
        None,
        "mean of 2 windows",
        "mean of 3 windows",
    ]
