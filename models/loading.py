"""Loads a checkpoint of transformers on a device, with nothing of its own sampling settings left.

Invariant: of the checkpoint's generation configuration only the start, end and padding tokens are kept; whatever else
shapes a reply comes from `conf/model/` and is part of the trial id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farm.checkpoints import source

DTYPES = ("float32", "bfloat16", "float16")
ATTENTION = ("sdpa", "eager", "flash_attention_2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """How weights are held: precision, attention kernel, device."""

    dtype: str
    """`float32`, `bfloat16`, `float16`; replies are independent of the batch in float32 only."""
    attention: str
    """`sdpa`, `eager`, `flash_attention_2`."""
    device: str
    device_map: str | None = None
    """`auto` spreads one model over all visible GPUs (accelerate); None puts it on `device`."""


def check(arguments: Mapping[str, Any]) -> None:
    """Refuses an adapter's precision, kernel or class before anything is loaded.

    Raises:
        ValueError: with the valid choices.
    """
    for name, choices in (("dtype", DTYPES), ("attention", ATTENTION)):
        if name in arguments and arguments[name] not in choices:
            raise ValueError(f"{name}={arguments[name]}: one of {', '.join(choices)}")
    if not isinstance(arguments.get("device_map"), str | None):
        raise ValueError(f"device_map={arguments['device_map']}: auto, or null for one device")


def load(model_class: str, checkpoint: Mapping[str, Any], placement: Placement) -> Any:
    """A model in evaluation mode.

    Args:
        model_class: Name of a class of transformers.
        checkpoint: See `farm.checkpoints.source`.
        placement: Precision, attention, device.

    Raises:
        ValueError: no such class, or the checkpoint lacks weights that it needs.
    """
    import transformers

    # Its bars and reports for loading weights would break the sweep's own display.
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    if not hasattr(transformers, model_class):
        raise ValueError(f"transformers {transformers.__version__} has no class {model_class}")
    name, revision = source(checkpoint)
    settings = {"revision": revision} if revision else {}
    if placement.device_map:
        settings["device_map"] = placement.device_map
    # Some classes override it and then give no report.
    model, report = transformers.PreTrainedModel.from_pretrained.__func__(
        getattr(transformers, model_class),
        name,
        dtype=placement.dtype,
        attn_implementation=placement.attention,
        output_loading_info=True,
        **settings,
    )
    # What it has beyond is fine: a thinker loads out of a checkpoint with a talker.
    if lacking := sorted(report["missing_keys"]):
        raise ValueError(f"{name} has no weights for {len(lacking)} of {model_class}: {lacking[0]} ...")
    return (model if placement.device_map else model.to(placement.device)).eval()


def load_processor(checkpoint: Mapping[str, Any]) -> Any:
    """The checkpoint's processor, padding on the left as decoders need it (some are saved with right padding)."""
    from transformers import AutoProcessor

    name, revision = source(checkpoint)
    processor = AutoProcessor.from_pretrained(name, **({"revision": revision} if revision else {}))
    processor.tokenizer.padding_side = "left"
    return processor


def stop_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Tokens that end a reply: the checkpoint's, and its tokenizer's."""
    listed = model.generation_config.eos_token_id
    several = listed if isinstance(listed, list) else [listed]
    return frozenset(int(token) for token in [*several, tokenizer.eos_token_id] if token is not None)


def forget_sampling(model: Any, tokenizer: Any, stops: frozenset[int]) -> None:
    """Replaces the model's generation configuration by one that holds only its tokens."""
    from transformers import GenerationConfig

    old = model.generation_config
    pad = next(p for p in (old.pad_token_id, tokenizer.pad_token_id, *sorted(stops)) if p is not None)
    model.generation_config = GenerationConfig(
        bos_token_id=old.bos_token_id, eos_token_id=sorted(stops) or None, pad_token_id=pad
    )


def context_tokens(model: Any) -> int:
    """How many tokens, prompt and reply, the language model has positions for."""
    return int(model.config.get_text_config(decoder=True).max_position_embeddings)
