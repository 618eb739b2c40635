import sys

import numpy as np
import pytest

from scoring.distillmos import _torchaudio_stand_in
from scoring.quality import DistillMos
from tests.scoring import clips


@pytest.mark.parametrize("seconds", [1.0, 7.68, 7.7, 13.3])
def test_values_are_those_of_the_package(seconds: float) -> None:
    import torch

    with _torchaudio_stand_in():
        from distillmos import ConvTransformerSQAModel
    samples = clips.voice(seconds, 16000).astype(np.float32)
    with torch.inference_mode():
        expected = ConvTransformerSQAModel().eval()(torch.from_numpy(samples)[None])
    found = clips.values(DistillMos().score([clips.reply(samples, 16000)]))
    assert abs(found.item() - expected.item()) < 1e-4


def test_the_torchaudio_stand_in_is_gone_after_loading() -> None:
    DistillMos()
    assert "torchaudio" not in sys.modules
