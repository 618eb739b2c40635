"""What an option cannot be is said before anything is loaded, with what it can be."""

import re
from typing import Any

import pytest

from farm.types import Capabilities, Prompt, WorkerOptions
from jobs.checks import arguments, build


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        (WorkerOptions, {"count": 0}, "count=0: at least 1"),
        (WorkerOptions, {"max_batch": 0}, "max_batch=0: at least 1"),
        (WorkerOptions, {"num_gpus": -1}, "num_gpus=-1: at least 0"),
        (WorkerOptions, {"timeout_s": 0}, "timeout_s=0: above 0"),
        (WorkerOptions, {"count": "two"}, "count='two': wanted is int"),
        (WorkerOptions, {"count": True}, "count=True: wanted is int"),
        (WorkerOptions, {"gpus": 1}, "no field gpus; it has count"),
        (Capabilities, {"text_out": True}, "speech_out must be given"),
        (Capabilities, {"text_out": 1, "speech_out": False}, "text_out=1: wanted is bool"),
        (Prompt, {"name": "p", "strength": "loud"}, "strength='loud': one of zero, basic, enhanced"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_what_would(
    kind: type, values: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        build(kind, values, "model=m")


def test_values_that_fit_become_the_dataclass() -> None:
    built = build(WorkerOptions, {"num_cpus": 1, "timeout_s": 30, "py_executable": None}, "model=m")
    assert built == WorkerOptions(num_cpus=1, timeout_s=30, py_executable=None)


GENERATION = {"max_new_tokens": 24}
CHAT = {
    "_target_": "models.language.TransformersChat",
    "checkpoint": {"path": "x"},
    "dtype": "float32",
    "attention": "sdpa",
    "generation": GENERATION,
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"generations": {}}, "TransformersChat has no argument generations; it takes checkpoint, dtype"),
        ({"generation": {"max_new_tokens": 0}}, "max_new_tokens >= 1"),
        ({"generation": {"max_new_tokens": 2, "top_q": 3}}, "no setting top_q"),
    ],
)
def test_arguments_that_a_class_would_refuse_are_found_wherever_they_stand(
    change: dict[str, Any], said: str
) -> None:
    tree = {
        "_target_": "models.cascade.Cascade",
        "recogniser": {},
        "language_model": CHAT | change,
        "synthesiser": None,
    }
    assert any(said in problem for problem in arguments(tree, "model=m"))


def test_a_missing_argument_is_named() -> None:
    call = {key: value for key, value in CHAT.items() if key != "dtype"}
    assert arguments(call, "model=m") == ["model=m: TransformersChat needs dtype"]


def test_what_the_shipped_options_give_is_right() -> None:
    assert arguments(CHAT, "model=m") == []


VLLM = {
    "_target_": "models.vllm_engine.VLLMEngine",
    "checkpoint": {"path": "x"},
    "prompt_format": {},
    "generation": GENERATION,
    "dtype": "float32",
    "max_model_len": 64,
    "resources": {},
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"max_model_len": 24}, "max_model_len=24: a whole number above max_new_tokens=24"),
        ({"max_model_len": None}, "max_model_len=None: a whole number"),
        ({"resources": {"max_seqs": 3}}, "no setting max_seqs; it has tensor_parallel_size"),
        ({"resources": {"gpu_memory_utilization": 90}}, "0 < gpu_memory_utilization <= 1"),
        ({"resources": {"tensor_parallel_size": 0}}, "tensor_parallel_size >= 1"),
        ({"prompt_format": {"template": "x"}}, "no setting template"),
    ],
)
def test_what_vllm_would_refuse_is_found_without_it(change: dict[str, Any], said: str) -> None:
    assert arguments(VLLM, "model=m") == []
    assert any(said in problem for problem in arguments(VLLM | change, "model=m"))
