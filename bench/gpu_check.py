"""How much one CUDA GPU gains from batches: `python -m bench.gpu_check`, under 8 minutes.

Qwen2.5-Omni-7B's thinker and Qwen2-Audio-7B at full size with random weights in bfloat16: what a request costs does not
depend on what the weights say. Requests are 3 to 10 s of noise and exactly 128 new tokens, through the same code as a
sweep's. Nothing is downloaded; only torch and transformers (with torchvision, for Qwen2.5-Omni) are needed, vLLM is
measured too where it is installed.

    python -m bench.gpu_check                              # on a GPU of 40 GB or more
    python -m bench.gpu_check --size tiny --device cpu     # the same code in seconds

Invariant: prints a line a figure, `name value`; peak memory is torch's, of that measurement alone.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from farm.types import AudioSegment, Request, TextSegment, Waveform
from models import loading
from models.audio_inputs import PromptFormat, prepare
from models.chat_audio import write
from models.decoding import Generation
from models.tiny import make

RATE_HZ = 16_000
SHORTEST_S, LONGEST_S = 3.0, 10.0
TOKENS = 128
BATCHED, ALONE = 64, 8
"""Requests of each measurement."""
MAX_PADDED_S = 320.0
"""Of audio in a batch: 32 requests of the longest."""
TEXT_7B = {
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 32768,
}
"""Qwen2.5-7B's shape."""
TEXT_QWEN_7B = {
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 156032,
    "max_position_embeddings": 8192,
}
"""Qwen-7B's shape, as Qwen2-Audio-7B has it."""
ENCODER = {
    "d_model": 1280,
    "encoder_layers": 32,
    "encoder_attention_heads": 20,
    "encoder_ffn_dim": 5120,
    "num_mel_bins": 128,
    "max_source_positions": 1500,
}
"""Whisper-large-v3's encoder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One architecture at full size; its tokens and processor are the tiny checkpoint's."""

    name: str
    architecture: str
    """Of models/tiny/."""
    model_class: str
    text: Mapping[str, Any]
    encoder: Mapping[str, Any]
    prompt_format: Mapping[str, Any]


SHAPES = (
    Shape(
        name="qwen2_5_omni_7b_text",
        architecture="qwen2_5_omni",
        model_class="Qwen2_5OmniThinkerForConditionalGeneration",
        text={
            **TEXT_7B,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]},
        },
        encoder={**ENCODER, "n_window": 100, "output_dim": 3584},
        prompt_format={"fit_audio_window": True, "processor_options": {"padding": True}},
    ),
    Shape(
        name="qwen2_audio_7b",
        architecture="qwen2_audio",
        model_class="Qwen2AudioForConditionalGeneration",
        text=TEXT_QWEN_7B,
        encoder=ENCODER,
        prompt_format={"processor_options": {"padding": True, "sampling_rate": RATE_HZ}},
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures every shape; returns the exit status."""
    import torch

    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu_check", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--size", choices=("full", "tiny"), default="full")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--requests", type=int, default=BATCHED, help=f"in batches ({BATCHED})")
    chosen = parser.parse_args(arguments)
    if chosen.device == "cuda" and not torch.cuda.is_available():
        print("gpu_check: no CUDA GPU; --size tiny --device cpu tries the code", file=sys.stderr)
        return 2
    where = torch.cuda.get_device_name() if chosen.device == "cuda" else "CPU"
    print(f"{where}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}", flush=True)
    with TemporaryDirectory() as folder:
        for shape in SHAPES:
            measure(shape, Path(folder) / shape.name, chosen.size, chosen.device, chosen.requests)
    return 0


def measure(shape: Shape, folder: Path, size: str, device: str, count: int) -> None:
    """Prints a shape's figures: batches, batch 1, and vLLM where it is there."""
    make(shape.architecture, folder)
    if size == "full":
        _enlarge(shape, folder)
    batched, alone = requests(count), requests(min(ALONE, count))
    model, processor = _load(shape, folder, device)
    _run(shape, model, processor, alone[:1], 1)
    rate = _timed(shape, model, processor, batched, len(batched), device, "batched")
    single = _timed(shape, model, processor, alone, 1, device, "batch_1")
    print(f"{shape.name}.batched_over_batch_1 {rate / single:.2f}", flush=True)
    del model
    gc.collect()
    _empty_cache(device)
    _vllm(shape, folder, size, batched)


def requests(count: int) -> list[Request]:
    """Noise of 3 to 10 s and a question, longest last."""
    generator = np.random.default_rng(0)
    made = []
    for seed, seconds in enumerate(np.linspace(SHORTEST_S, LONGEST_S, count)):
        noise = generator.normal(scale=0.1, size=int(seconds * RATE_HZ)).astype(np.float32)
        clip = AudioSegment(
            role="question",
            path="",
            sha256="",
            seconds=float(seconds),
            waveform=Waveform(samples=noise, sample_rate_hz=RATE_HZ),
        )
        question = TextSegment(role="question", text="How does the speaker feel?")
        made.append(Request(system="You are a helpful assistant.", turns=((clip, question),), seed=seed))
    return made


def _enlarge(shape: Shape, folder: Path) -> None:
    """Rewrites the checkpoint's configuration to full size; its weights are then of no use and removed."""
    path = folder / "config.json"
    whole = json.loads(path.read_text())
    # Qwen2.5-Omni's checkpoint holds its thinker's configuration inside.
    part = whole.get("thinker_config", whole)
    # What the small shape's numbers had made of its defaults.
    for derived in ("layer_types", "max_window_layers", "head_dim"):
        part["text_config"].pop(derived, None)
    part["text_config"].update(shape.text)
    part["audio_config"].update(shape.encoder)
    if "vision_config" in part:
        part["vision_config"]["out_hidden_size"] = shape.text["hidden_size"]
    if "vocab_size" in part:
        part["vocab_size"] = shape.text["vocab_size"]
    path.write_text(json.dumps(whole))
    for weights in folder.glob("*.safetensors"):
        weights.unlink()


def _load(shape: Shape, folder: Path, device: str) -> tuple[Any, Any]:
    """The model with random weights, in bfloat16, where it will run."""
    import torch
    import transformers
    from transformers import AutoConfig

    transformers.utils.logging.set_verbosity_error()
    config = AutoConfig.from_pretrained(folder)
    config = getattr(config, "thinker_config", config)
    processor = loading.load_processor({"path": str(folder)})
    torch.manual_seed(0)
    with torch.device(device):
        torch.set_default_dtype(torch.bfloat16)
        try:
            model = getattr(transformers, shape.model_class)(config).eval()
        finally:
            torch.set_default_dtype(torch.float32)
    # No stop token: every reply has as many tokens.
    loading.forget_sampling(model, processor.tokenizer, frozenset())
    return model, processor


def _run(shape: Shape, model: Any, processor: Any, asked: Sequence[Request], batch: int) -> int:
    """Tokens written; longest first, in batches of one padded length, as the farm deals them out."""
    prompt_format = PromptFormat.parse(shape.prompt_format)
    generation = Generation(max_new_tokens=TOKENS)
    ordered = sorted(asked, key=lambda request: -request.seconds)
    done = 0
    while ordered:
        fits = max(1, min(batch, int(MAX_PADDED_S // ordered[0].seconds)))
        some, ordered = ordered[:fits], ordered[fits:]
        inputs = prepare(processor, prompt_format, some)
        done += sum(map(len, write(model, inputs, [r.seed for r in some], generation).tokens))
    return done


def _timed(
    shape: Shape, model: Any, processor: Any, asked: Sequence[Request], batch: int, device: str, name: str
) -> float:
    import torch

    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    began_s = time.perf_counter()
    tokens = _run(shape, model, processor, asked, batch)
    rate = len(asked) / (time.perf_counter() - began_s)
    assert tokens == TOKENS * len(asked), f"{tokens} tokens of {TOKENS * len(asked)}"
    print(f"{shape.name}.{name}.requests_per_s {rate:.3f}", flush=True)
    if device == "cuda":
        print(f"{shape.name}.{name}.peak_gb {torch.cuda.max_memory_allocated() / 1e9:.1f}", flush=True)
    return rate


def _empty_cache(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.empty_cache()


def _vllm(shape: Shape, folder: Path, size: str, asked: Sequence[Request]) -> None:
    """VLLM on the same shapes and requests, its weights random too."""
    try:
        from vllm import LLM, SamplingParams
    except ImportError:
        print(f"{shape.name}.vllm not installed", flush=True)
        return
    processor = loading.load_processor({"path": str(folder)})
    prompts = [_vllm_prompt(processor, request) for request in asked]
    engine = LLM(
        model=str(folder),
        dtype="bfloat16",
        load_format="dummy" if size == "full" else "auto",
        max_model_len=2048,
        limit_mm_per_prompt={"audio": 1},
        generation_config="vllm",
    )
    drawn = SamplingParams(temperature=0, max_tokens=TOKENS, ignore_eos=True)
    engine.generate(prompts[:1], drawn, use_tqdm=False)
    began_s = time.perf_counter()
    made = engine.generate(prompts, drawn, use_tqdm=False)
    rate = len(made) / (time.perf_counter() - began_s)
    print(f"{shape.name}.vllm.requests_per_s {rate:.3f}", flush=True)
    del engine


def _vllm_prompt(processor: Any, request: Request) -> dict[str, Any]:
    from models.conversation import messages, parts, waveforms

    text = processor.apply_chat_template(messages(request, parts), tokenize=False, add_generation_prompt=True)
    (clip,) = waveforms(request)
    return {"prompt": text, "multi_modal_data": {"audio": (clip.samples, clip.sample_rate_hz)}}


if __name__ == "__main__":
    sys.exit(main())
