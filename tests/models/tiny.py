"""Models on tiny checkpoints, made by the shipped options themselves, and requests for them."""

import dataclasses
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from omegaconf import OmegaConf

from farm.types import AudioSegment, Capabilities, Reply, Request, TextSegment, Waveform
from jobs import config
from models.tiny import make
from workers.model_worker import with_system_prompt

WEIGHTS = config.ROOT / "weights" / "tiny"


def checkpoint(architecture: str) -> Path:
    """The tiny checkpoint's folder, built where it is not there."""
    folder = WEIGHTS / architecture
    make(architecture, folder)
    return folder


@cache
def option(name: str) -> dict[str, Any]:
    """A model's option as a sweep composes it."""
    config.register_resolvers()
    with initialize_config_dir(str(config.ROOT / "conf"), version_base="1.3"):
        composed = compose("sweep", overrides=[f"model=[{name}]"])
    OmegaConf.resolve(composed)
    found: dict[str, Any] = OmegaConf.to_container(composed.models[name])  # type: ignore[assignment]
    return found


def adapter(architecture: str, **changes: Any) -> Any:
    """The option's adapter, loaded in this process on one thread; `changes` replaces arguments or keys of them."""
    import torch

    # On two threads tensors this small are up to 90 times slower.
    torch.set_num_threads(1)
    settings = {
        **option(f"tiny_{architecture}")["adapter"],
        "checkpoint": {"path": str(checkpoint(architecture))},
    }
    for key, value in changes.items():
        settings[key] = {**settings[key], **value} if isinstance(value, dict) else value
    return instantiate(settings, device="cpu", _convert_="all")


def asked(architecture: str, seconds: float, words: str, seed: int, system: str = "") -> Request:
    """A request of babble and text, its system prompt where the option's capabilities put it."""
    generator = np.random.default_rng(seed)
    samples = generator.normal(scale=0.1, size=round(seconds * 16_000)).astype(np.float32)
    clip = Waveform(samples=samples, sample_rate_hz=16_000)
    heard = AudioSegment(role="question", path="", sha256="", seconds=clip.seconds, waveform=clip)
    request = Request(system=system, turns=((heard, TextSegment(role="question", text=words)),), seed=seed)
    capabilities = Capabilities(**option(f"tiny_{architecture}")["capabilities"])
    return with_system_prompt(request, capabilities.system_prompt)


def written(model: Any, requests: Sequence[Request]) -> list[Reply]:
    """The replies with the ids of their tokens for text: bytes that are no letters would all read alike."""
    tokenizer = model._tokenizer if hasattr(model, "_tokenizer") else model._processor.tokenizer
    decode = tokenizer.decode
    tokenizer.decode = lambda tokens, **options: " ".join(map(str, tokens))
    try:
        replies: list[Reply] = model.answer(requests)
    finally:
        tokenizer.decode = decode
    return replies


def with_seed(request: Request, seed: int) -> Request:
    """The same request under another seed."""
    return dataclasses.replace(request, seed=seed)
