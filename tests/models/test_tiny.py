"""Tiny checkpoints: whole or not there, built once, and named as the published ones are."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

import models.tiny
from farm.digests import folder_digest
from jobs.config import ROOT
from models.saving import save
from models.tiny import make, qwen2_audio

LANGUAGE_MODEL_INSIDE = ("qwen2_audio", "audio_flamingo3", "voxtral", "glm_asr")


def names(folder: Path) -> list[str]:
    files = sorted(folder.glob("*.safetensors"))
    return sorted(name for file in files for name in safe_open(file, "pt").keys())


def weights(folder: Path) -> dict[str, Any]:
    found = {}
    for file in folder.glob("*.safetensors"):
        with safe_open(file, "pt") as opened:
            found |= {name: opened.get_tensor(name) for name in opened.keys()}
    return found


def test_a_checkpoint_is_built_once_and_always_the_same(tmp_path: Path) -> None:
    assert make("qwen2_audio", tmp_path / "one")
    before = (tmp_path / "one" / "config.json").stat().st_mtime_ns
    assert not make("qwen2_audio", tmp_path / "one")
    assert (tmp_path / "one" / "config.json").stat().st_mtime_ns == before
    assert make("qwen2_audio", tmp_path / "two")
    assert folder_digest(tmp_path / "one") == folder_digest(tmp_path / "two")


def test_one_of_another_recipe_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make("qwen2_audio", tmp_path / "one")
    monkeypatch.setattr(models.tiny, "RECIPE", "another")
    assert make("qwen2_audio", tmp_path / "one")
    assert not make("qwen2_audio", tmp_path / "one")


def test_a_build_that_breaks_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make("qwen2_audio", tmp_path / "one")
    before = folder_digest(tmp_path / "one")

    def breaks(folder: Path) -> None:
        folder.mkdir()
        (folder / "config.json").write_text("half")
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(models.tiny, "RECIPE", "another")
    monkeypatch.setattr(qwen2_audio, "build", breaks)
    for folder in ("one", "two"):
        with pytest.raises(RuntimeError, match="the disk is full"):
            make("qwen2_audio", tmp_path / folder)
    assert folder_digest(tmp_path / "one") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "one.recipe.txt"]


def test_an_unknown_name_names_the_known(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no tiny checkpoint of 'gpt'; there are qwen2_audio, .*, all"):
        make("gpt", tmp_path / "x")
    command = [sys.executable, "scripts/tiny_checkpoint.py", "gpt", str(tmp_path / "x")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 2 and "there are qwen2_audio" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("architecture", LANGUAGE_MODEL_INSIDE)
def test_weights_have_the_names_of_published_checkpoints(architecture: str, tmp_path: Path) -> None:
    """Transformers reads its own doubled names as well, so that no loading by it would show the difference."""
    make(architecture, tmp_path / "made")
    found = names(tmp_path / "made")
    assert "language_model.model.embed_tokens.weight" in found
    assert not [name for name in found if "model.model.model" in name]


def test_saving_changes_names_alone_in_every_shard(tmp_path: Path) -> None:
    from transformers import Qwen2AudioForConditionalGeneration

    make("qwen2_audio", tmp_path / "made")
    model = Qwen2AudioForConditionalGeneration.from_pretrained(tmp_path / "made")
    model.save_pretrained(tmp_path / "plain")
    model.save_pretrained = partial(model.save_pretrained, max_shard_size="300KB")
    save(model, tmp_path / "shards")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    plain, shards = weights(tmp_path / "plain"), weights(tmp_path / "shards")
    assert {name.replace("model.model.model", "model.model"): w.sum() for name, w in plain.items()} == {
        name: w.sum() for name, w in shards.items()
    }
    again, report = Qwen2AudioForConditionalGeneration.from_pretrained(
        tmp_path / "shards", output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"]
    state = again.state_dict()
    assert all(bool((state[name] == weight).all()) for name, weight in model.state_dict().items())


def test_voxtral_has_mistrals_format_beside_hugging_faces(tmp_path: Path) -> None:
    """Same weights under other names, rotary pairs side by side: `tests/vllm` has both answer alike."""
    make("voxtral", tmp_path / "made")
    ours = safe_open(tmp_path / "made" / "model.safetensors", "pt")
    theirs = safe_open(tmp_path / "made" / "consolidated.safetensors", "pt")
    assert len(theirs.keys()) == len(ours.keys()) and "layers.1.attention.wq.weight" in theirs.keys()
    query = ours.get_tensor("language_model.model.layers.1.self_attn.q_proj.weight")
    half = query.shape[0] // 4
    paired = theirs.get_tensor("layers.1.attention.wq.weight")
    assert bool((paired[0] == query[0]).all()) and bool((paired[1] == query[half]).all())


def test_a_folder_that_was_not_built_here_is_refused_and_kept(tmp_path: Path) -> None:
    kept = tmp_path / "mine" / "thesis.txt"
    kept.parent.mkdir()
    kept.write_text("years of work")
    for target in (kept.parent, kept):
        with pytest.raises(ValueError, match="would be lost"):
            make("qwen2_audio", target)
    assert kept.read_text() == "years of work"


def test_a_rebuild_that_was_cut_short_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qwen2_audio, "build", lambda folder: folder.mkdir())
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "old").touch()
    folder.with_name("tiny.recipe.txt").write_text("unfinished\n")
    assert make("qwen2_audio", folder)
    assert not make("qwen2_audio", folder)
    assert not (folder / "old").exists()
