from typing import Any

import numpy as np
import pytest

from scoring.quality import Dnsmos
from tests.scoring import clips


def test_values_are_those_of_the_package() -> None:
    from speechmos import dnsmos

    samples = clips.voice(2.4, 16000).astype(np.float32)
    expected = dnsmos.run(samples, 16000)
    found = clips.values(Dnsmos().score([clips.reply(samples, 16000)]))[0]
    assert np.allclose(found, [expected[f"{part}_mos"] for part in ("ovrl", "sig", "bak", "p808")], atol=1e-4)


def test_its_networks_run_on_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    threads = []
    opened = onnxruntime.InferenceSession

    def session(path: str, options: Any = None, **more: Any) -> Any:
        threads.append(options.intra_op_num_threads if options else None)
        return opened(path, options, **more)

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    Dnsmos()
    assert threads[-2:] == [1, 1]
