"""Run by vLLM's interpreter: answers pickled batches, `python -m tests.vllm.answer ASKED ANSWERED`."""

import pickle
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.utils import instantiate

from farm.types import Reply, Request
from tests.models.tiny import written


def answered(engine: Any, batch: Sequence[Request]) -> tuple[list[Reply], float]:
    """Replies and seconds; none where the batch breaks on audio that was never heard."""
    began_s = time.perf_counter()
    try:
        replies = written(engine, batch)
    except AssertionError:
        replies = []
    return replies, time.perf_counter() - began_s


if __name__ == "__main__":
    adapter, batches = pickle.loads(Path(sys.argv[1]).read_bytes())
    engine = instantiate(adapter, device="cpu", _convert_="all")
    Path(sys.argv[2]).write_bytes(pickle.dumps([answered(engine, batch) for batch in batches]))
