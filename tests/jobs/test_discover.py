"""Finding checkpoints: whole and quiet folders, known by their bytes; a real MLflow registry."""

import json
import os
import time
from pathlib import Path

import pytest

from jobs.discover import discover, in_folder, step, unready


def checkpoint(folder: Path, content: bytes = b"w", age_s: float = 3600) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(content)
    for path in folder.iterdir():
        os.utime(path, (time.time() - age_s,) * 2)
    return folder


def test_checkpoints_come_in_the_order_of_their_steps_and_a_copy_is_no_second_one(tmp_path: Path) -> None:
    checkpoint(tmp_path / "step-900", b"a")
    checkpoint(tmp_path / "step-1000", b"b")
    checkpoint(tmp_path / "step-1100", b"b")
    found = in_folder(tmp_path, 60)
    assert [(c.name, c.step) for c in found.candidates] == [("step-900", 900), ("step-1000", 1000)]


def test_the_same_size_with_other_bytes_is_another_checkpoint(tmp_path: Path) -> None:
    checkpoint(tmp_path / "a", b"12345")
    checkpoint(tmp_path / "b", b"12346")
    assert len(in_folder(tmp_path, 60).candidates) == 2


def test_what_is_not_whole_waits_and_says_why(tmp_path: Path) -> None:
    young = checkpoint(tmp_path / "young", age_s=5)
    assert "changed 5 s ago" in unready(young, 60)
    (young / "DONE").touch()
    assert unready(young, 60) == ""
    bare = tmp_path / "bare"
    bare.mkdir()
    assert unready(bare, 60) == "no config.json"
    half = checkpoint(tmp_path / "half")
    (half / "x.safetensors.part").touch()
    assert "still being written" in unready(half, 0)
    sharded = checkpoint(tmp_path / "sharded")
    shards = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    (sharded / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    (sharded / "model-1.safetensors").touch()
    assert unready(sharded, 0) == "1 shards of its index are missing: model-2.safetensors ..."
    (sharded / "model.safetensors.index.json").write_text("{")
    assert "no index yet" in unready(sharded, 0)
    found = in_folder(tmp_path, 60)
    assert [c.name for c in found.candidates] == ["young"] and len(found.waiting) == 3


def test_a_source_of_another_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="exactly one of folder, repo, registered_model"):
        discover({"folder": str(tmp_path), "repo": "a/b"})
    with pytest.raises(ValueError, match="no such folder"):
        discover({"folder": str(tmp_path / "gone")})


def test_versions_of_a_registered_model_are_candidates(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    client = MlflowClient(tracking_uri=uri)
    client.create_registered_model("slm")
    client.create_model_version("slm", "hf://org/model@0123456789abcdef0123456789abcdef01234567")
    client.create_model_version("slm", f"ckpt://{checkpoint(tmp_path / 'c')}")
    client.create_model_version("slm", "ckpt:///gone/for/ever")
    found = discover({"registered_model": "slm", "tracking_uri": uri})
    assert [c.name for c in found.candidates] == ["slm v1", "slm v2"]
    assert found.candidates[0].place == {
        "repo": "org/model",
        "revision": "0123456789abcdef0123456789abcdef01234567",
    }
    assert "slm v3" in found.waiting[0]
    with pytest.raises(ValueError, match="no such model"):
        discover({"registered_model": "other", "tracking_uri": uri})


def test_the_step_is_the_last_number_of_a_name() -> None:
    assert [step(n) for n in ("checkpoint-1200", "v2-step_300", "final")] == [1200, 300, None]
