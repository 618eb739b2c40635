"""ONNX sessions whose results do not depend on the machine's number of cores.

Invariant: one thread a session. Sums that are split over more threads are rounded differently (measured: Piper's
samples differ between one and two threads), so speed comes from several texts at a time instead: `each`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


def runner(module: str) -> Any:
    """A synthesiser's package.

    Raises:
        ImportError: it is not installed; the message says how it is.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(f"{error}; synthesisers are an extra: pip install -e '.[tts]'") from error


def session(model: Path, device: str) -> Any:
    """An `onnxruntime.InferenceSession` on the device, where this onnxruntime can use it (else on the CPU)."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    wanted = ["CUDAExecutionProvider"] if device.startswith("cuda") else []
    available = onnxruntime.get_available_providers()
    providers = [name for name in [*wanted, "CPUExecutionProvider"] if name in available]
    return onnxruntime.InferenceSession(str(model), options, providers=providers)


def each(work: Callable[[Given], Made], values: Sequence[Given]) -> list[Made]:
    """The function of every value, in order, on as many threads as OMP_NUM_THREADS (or the machine) allows."""
    threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    with ThreadPoolExecutor(max_workers=threads) as pool:
        return list(pool.map(work, values))
