"""Merging an adapter, on the tiny Audio Flamingo 3 with a random LoRA in the published layout."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from scripts.merge_adapter import MERGES, merge
from tests.models.tiny import adapter, asked, checkpoint, written

RECIPE = MERGES["audio_flamingo3_think"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny base model with think/ beside it: a LoRA, and weights trained beside it."""
    from peft import LoraConfig, get_peft_model
    from transformers import AudioFlamingo3ForConditionalGeneration

    folder = tmp_path_factory.mktemp("published") / "af3"
    shutil.copytree(checkpoint("audio_flamingo3"), folder)
    model = AudioFlamingo3ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    projector = {k: v + 0.5 for k, v in model.state_dict().items() if "projector" in k and k.endswith("bias")}
    assert projector
    torch.manual_seed(0)
    tuned = get_peft_model(
        model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    )
    tuned.save_pretrained(folder / "think")
    torch.save(projector, folder / "think" / "non_lora_trainables.bin")
    return folder


def test_the_merged_checkpoint_answers_as_base_and_adapter_do_together(
    published: Path, tmp_path: Path
) -> None:
    from peft import PeftModel
    from transformers import AudioFlamingo3ForConditionalGeneration, AutoProcessor

    merge(RECIPE, published, "some-commit", tmp_path / "merged", "float32")
    merged = AudioFlamingo3ForConditionalGeneration.from_pretrained(tmp_path / "merged", dtype=torch.float32)
    base = AudioFlamingo3ForConditionalGeneration.from_pretrained(published, dtype=torch.float32)
    plain = {name: weight.clone() for name, weight in base.state_dict().items()}
    base.load_state_dict(torch.load(published / "think" / "non_lora_trainables.bin"), strict=False)
    beside = PeftModel.from_pretrained(base, published, subfolder="think").eval()
    ids = AutoProcessor.from_pretrained(published).tokenizer("Who?", return_tensors="pt")
    with torch.inference_mode():
        ours, theirs = merged.eval()(**ids).logits, beside(**ids).logits
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    changed = {n.split(".")[-2] for n, w in merged.state_dict().items() if not torch.equal(w, plain[n])}
    assert {"q_proj", "v_proj"} <= changed and any("linear" in name for name in changed)
    assert json.loads((tmp_path / "merged" / "merged_from.json").read_text())["revision"] == "some-commit"


def test_it_loads_through_the_shipped_option(published: Path, tmp_path: Path) -> None:
    merge(RECIPE, published, "c", tmp_path / "merged", "float32")
    model = adapter(
        "audio_flamingo3",
        checkpoint={"path": str(tmp_path / "merged")},
        generation={"max_new_tokens": 6, "do_sample": False},
    )
    request = asked("audio_flamingo3", 1.0, "Who?", 1)
    base = adapter("audio_flamingo3", generation={"max_new_tokens": 6, "do_sample": False})
    assert written(model, [request])[0].text != written(base, [request])[0].text


def test_strange_weights_and_a_taken_folder_are_refused_and_leave_nothing(
    published: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(published, broken)
    torch.save({"nothing.of.it": torch.zeros(1)}, broken / "think" / "non_lora_trainables.bin")
    with pytest.raises(ValueError, match=r"1 weights that .* has not: nothing\.of\.it"):
        merge(RECIPE, broken, "c", tmp_path / "out" / "merged", "float32")
    assert list((tmp_path / "out").iterdir()) == []
    with pytest.raises(ValueError, match="is there already"):
        merge(RECIPE, published, "c", broken, "float32")
