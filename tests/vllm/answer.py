"""Run by vLLM's interpreter: answers pickled batches, `python -m tests.vllm.answer ASKED ANSWERED`."""

import pickle
import sys
from pathlib import Path

from hydra.utils import instantiate

from tests.models.tiny import written

if __name__ == "__main__":
    adapter, batches = pickle.loads(Path(sys.argv[1]).read_bytes())
    engine = instantiate(adapter, device="cpu", _convert_="all")
    replies = [written(engine, batch) for batch in batches]
    Path(sys.argv[2]).write_bytes(pickle.dumps(replies))
