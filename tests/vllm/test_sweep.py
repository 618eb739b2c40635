"""A sweep whose workers run in vLLM's environment: Ray starts them by its interpreter."""

import json
from pathlib import Path

from farm.store import Store
from tests.models.tiny import checkpoint
from tests.vllm.environment import sweep

MODELS = ("tiny_qwen2_audio_vllm", "tiny_qwen2_audio")


def test_a_sweep_in_both_environments_keeps_the_same_replies(tmp_path: Path) -> None:
    checkpoint("qwen2_audio")
    done = sweep(
        f"model=[{','.join(MODELS)}]",
        *(f"models.{name}.adapter.generation.do_sample=false" for name in MODELS),
        "prompt=[p1,p2]",
        "condition=[clean]",
        "scorer=[]",
        "tracking=off",
        "limit=2",
        "repeats=1",
        f"store={tmp_path / 'store'}",
        f"hydra.run.dir={tmp_path / 'out'}",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    store = Store.open(str(tmp_path / "store"), create=False)
    rows = store.replies(columns=["model", "item_key", "prompt", "text", "tokens_out", "environment"])
    replies = {name: [row for row in rows.to_pylist() if row["model"] == name] for name in MODELS}
    said = [
        sorted((row["item_key"], row["prompt"], row["text"], row["tokens_out"]) for row in replies[name])
        for name in MODELS
    ]
    assert len(said[0]) == 4 and said[0] == said[1]
    for name, there in zip(MODELS, (True, False), strict=True):
        (digest,) = {row["environment"] for row in replies[name]}
        packages = json.loads((tmp_path / "store" / "environments" / f"{digest}.json").read_text())
        assert any(package.startswith("vllm") for package in packages) == there


def test_without_the_environment_a_sweep_is_refused_with_the_command_that_makes_it(tmp_path: Path) -> None:
    python = tmp_path / ".envs" / "vllm" / "bin" / "python"
    setting = f"models.tiny_qwen2_audio_vllm.workers.py_executable={python}"
    done = sweep("model=[tiny_qwen2_audio_vllm]", setting, f"store={tmp_path / 'store'}")
    assert done.returncode == 2
    assert "python scripts/make_env.py vllm" in done.stderr and "Traceback" not in done.stderr
