from pathlib import Path

import numpy as np
import pytest

from farm.digests import folder_digest
from models.language import Chat, Completion, TransformersChat
from scripts.gguf_to_hf import main

WORDS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + m['content'] + '<|im_end|>' }}{% endfor %}"


@pytest.fixture
def tiny_gguf(tmp_path: Path) -> Path:
    """A Llama of one layer with a byte-level vocabulary, as SmolLM2's file is laid out."""
    import gguf
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    path = tmp_path / "tiny.gguf"
    vocabulary = [*WORDS, *bytes_to_unicode().values(), "11"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(32)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(16)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(vocabulary))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(vocabulary)
    writer.add_token_types([3] * len(WORDS) + [1] * (len(vocabulary) - len(WORDS)))
    writer.add_token_merges(["1 1"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_chat_template(TEMPLATE)
    rng = np.random.default_rng(0)
    shapes = {"attn_q": (32, 32), "attn_k": (16, 32), "attn_v": (16, 32), "attn_output": (32, 32)}
    shapes |= {"ffn_gate": (32, 32), "ffn_up": (32, 32), "ffn_down": (32, 32)}
    writer.add_tensor("token_embd.weight", rng.standard_normal((len(vocabulary), 32)).astype(np.float32))
    for name, shape in shapes.items():
        writer.add_tensor(f"blk.0.{name}.weight", rng.standard_normal(shape).astype(np.float32) / 5)
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(32, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_conversion_is_the_same_bytes_each_time_and_answers(tiny_gguf: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        main(tiny_gguf, tmp_path / name)
    assert folder_digest(tmp_path / "first") == folder_digest(tmp_path / "second")
    written = "".join(path.read_text() for path in (tmp_path / "first").glob("*config.json"))
    assert "transformers_version" not in written
    model = TransformersChat(
        checkpoint={"path": str(tmp_path / "first")},
        dtype="float32",
        attention="sdpa",
        generation={"max_new_tokens": 4},
    )
    (completion,) = model.complete([Chat(system="", user="hello", seed=0)])
    assert isinstance(completion, Completion)
    assert completion.tokens_out <= 4


def test_digits_are_tokens_of_their_own(tiny_gguf: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    main(tiny_gguf, tmp_path / "hf")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert tokenizer.tokenize("a11") == ["a", "1", "1"]
