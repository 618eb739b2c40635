"""Speech in, text out, by vLLM's engine inside the worker: every architecture that vLLM takes audio for.

What the model reads is what `models.chat_audio` has it read: the prompt is written by the checkpoint's own processor
(or, for Mistral's models, by Mistral's tokenizer), and vLLM is handed that text and the samples. It runs in an
environment of its own: `python scripts/make_env.py vllm`.

Invariant: one reply a request, in order; a request that vLLM refuses is a failure of its own. Nothing of how a reply is
drawn comes from the checkpoint but its end tokens. A sampled reply is drawn from its request's own seed.

vLLM decides at each step which requests share a forward pass, so the batch that a request is in is not ours to choose.
In float32 greedy replies equal those of transformers, item by item (tests/vllm). In bfloat16 and float16 rounding
depends on the neighbours, here as anywhere: a reply may differ between two runs, and no test can promise otherwise.
Sampled replies are not those of transformers: the two draw differently from one seed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from farm.checkpoints import source
from farm.servers import known_only
from farm.types import Event, Failure, Reply, Request
from models.audio_inputs import PromptFormat, chat_parts, clips, prompt_text, window, with_suffix
from models.conversation import messages, noise_request
from models.decoding import Generation, cut

WARM_UP_S = 1.0
AUDIO_SEGMENTS = 32
"""Of one request at most."""
QUOTED_CHARACTERS = 300
"""vLLM's refusals can print the samples."""
SETTINGS = {
    # The engine in this process: it dies with the worker, and no orphan holds the GPU.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # No reports to vLLM's makers.
    "VLLM_NO_USAGE_STATS": "1",
}
"""Environment variables that vLLM reads when it is imported; those that are set win."""
MISTRAL = {"tokenizer_mode": "mistral", "config_format": "mistral", "load_format": "mistral"}
"""Mistral's own checkpoint format, which its models are published in beside Hugging Face's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What of the machine the engine may use; changes no reply up to rounding, so it is in no id."""

    tensor_parallel_size: int = 1
    """GPUs that share the weights; as many as the worker has (`workers.num_gpus`)."""
    gpu_memory_utilization: float = 0.9
    """Share of a GPU's memory for weights and cache. A CPU's cache is VLLM_CPU_KVCACHE_SPACE, in GiB."""
    max_num_seqs: int = 128
    """Requests that are written at once."""
    enforce_eager: bool = False
    """True loads faster and runs slower: nothing is compiled, no CUDA graph is captured."""
    prefix_caching: bool = True
    """Computes a system prompt that requests share once."""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Resources:
        """The settings of a configuration.

        Raises:
            ValueError: an unknown key, or a value outside its range.
        """
        known_only("resources", cls, values)
        made = cls(**values)
        if made.tensor_parallel_size < 1 or made.max_num_seqs < 1 or not 0 < made.gpu_memory_utilization <= 1:
            raise ValueError(
                f"{made}: tensor_parallel_size >= 1, max_num_seqs >= 1, 0 < gpu_memory_utilization <= 1"
            )
        return made


class VLLMEngine:
    """One checkpoint; answers in text.

    Args:
        checkpoint: A Hugging Face folder (`path`), or `repo` and `revision`.
        prompt_format: The fields of `models.audio_inputs.PromptFormat`.
        generation: The settings of `models.decoding.Generation`; nothing is taken from the checkpoint's own.
        dtype: `float32`, `bfloat16` or `float16`.
        max_model_len: Tokens of prompt and reply together; a prompt that leaves the reply no room is an `input_error`.
        resources: The fields of `Resources`.
        device: Given by the worker; vLLM's build decides where it runs.

    Raises:
        ValueError: wrong settings, or a checkpoint that lies nowhere.
    """

    version = "1"

    @classmethod
    def check(cls, arguments: Mapping[str, Any]) -> None:
        """Refuses settings before anything is loaded; raises ValueError."""
        generation = Generation.parse(arguments.get("generation", {}))
        PromptFormat.parse(arguments.get("prompt_format", {}))
        Resources.parse(arguments.get("resources", {}))
        _room(arguments.get("max_model_len", 0), generation)

    def __init__(
        self,
        *,
        checkpoint: Mapping[str, Any],
        prompt_format: Mapping[str, Any],
        generation: Mapping[str, Any],
        dtype: str,
        max_model_len: int,
        resources: Mapping[str, Any],
        device: str = "cpu",
    ) -> None:
        self._format = PromptFormat.parse(prompt_format)
        self._generation = Generation.parse(generation)
        self._room = _room(max_model_len, self._generation)
        self._engine = _engine(checkpoint, self._format, Resources.parse(resources), dtype, max_model_len)
        self._tokenizer = self._engine.get_tokenizer()
        self._processor = _processor(checkpoint, self._format)
        self._stops = _stops(checkpoint, self._engine)
        self._warm_up()

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers a batch; see `farm.types.SpeechModel`."""
        return self._answer(requests, self._generation)

    def _answer(self, requests: Sequence[Request], generation: Generation) -> list[Reply]:
        started_at_s = time.time()
        asked: list[str | Failure] = []
        try:
            for request in requests:
                asked.append(self._ask(request, generation))
            outputs = self._engine.wait_for_completion(use_tqdm=False)
        except BaseException:
            # Else what is left of this batch would be answered with the next.
            self._engine.llm_engine.abort_request([k for k in asked if isinstance(k, str)], internal=True)
            raise
        done = iter(outputs)
        return [
            Reply(failure=key) if isinstance(key, Failure) else self._reply(next(done), started_at_s)
            for key in asked
        ]

    def _ask(self, request: Request, generation: Generation) -> str | Failure:
        """Puts a request in the engine's queue; its key there, or why it was refused."""
        from vllm.exceptions import VLLMClientError

        drawn = _sampling(generation, request.seed, self._stops)
        asked = with_suffix(self._format, request)
        if self._processor is None:
            put = partial(self._engine.enqueue_chat, [self._chat(asked)])
        else:
            put = partial(self._engine.enqueue, [self._prompt(asked)])
        try:
            (key,) = put(drawn, use_tqdm=False)
        except (ValueError, VLLMClientError, AssertionError) as error:
            # An assertion of its own fails where a prompt lacks what stands for the audio.
            return Failure(kind="input_error", message=str(error)[:QUOTED_CHARACTERS])
        return str(key)

    def _chat(self, request: Request) -> list[dict[str, Any]]:
        content = partial(chat_parts, sample_rate_hz=self._format.sample_rate_hz)
        return messages(request, content, self._format.system_prefix)

    def _prompt(self, request: Request) -> dict[str, Any]:
        heard = clips(self._format, request)
        rate = self._format.sample_rate_hz
        options = dict(self._format.processor_options)
        if self._format.fit_audio_window and heard:
            longest = max(map(len, heard))
            options["audio_kwargs"] = {"max_length": window(self._processor.feature_extractor, longest)}
        return {
            "prompt": prompt_text(self._processor, self._format, request),
            "multi_modal_data": {"audio": [(clip, rate) for clip in heard]},
            "mm_processor_kwargs": options,
        }

    def _reply(self, output: Any, started_at_s: float) -> Reply:
        if (count := len(output.prompt_token_ids)) > self._room:
            message = f"{count} tokens; the context has room for {self._room}"
            return Reply(failure=Failure(kind="input_error", message=message))
        tokens, truncated = cut(output.outputs[0].token_ids, self._stops)
        return Reply(
            text=self._tokenizer.decode(tokens, skip_special_tokens=True).strip(),
            events=(_first_token(output.metrics, started_at_s),),
            tokens_in=count,
            tokens_out=len(tokens),
            truncated=truncated,
        )

    def _warm_up(self) -> None:
        """One short reply: kernels are compiled and chosen now, and a wrong prompt format ends the loading."""
        request = noise_request(WARM_UP_S, self._format.sample_rate_hz)
        (reply,) = self._answer([request], replace(self._generation, max_new_tokens=1))
        if reply.failure is not None:
            raise ValueError(f"vLLM refuses a request of this prompt_format: {reply.failure.message}")


def _room(max_model_len: Any, generation: Generation) -> int:
    """Tokens that a prompt may have."""
    whole = isinstance(max_model_len, int) and not isinstance(max_model_len, bool)
    if not whole or max_model_len <= generation.max_new_tokens:
        raise ValueError(
            f"max_model_len={max_model_len}: a whole number above max_new_tokens={generation.max_new_tokens}"
        )
    return int(max_model_len) - generation.max_new_tokens


def _engine(
    checkpoint: Mapping[str, Any],
    prompt_format: PromptFormat,
    resources: Resources,
    dtype: str,
    max_model_len: int,
) -> Any:
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    from vllm import LLM

    name, revision = source(checkpoint)
    mistral = MISTRAL if prompt_format.chat_template == "mistral_common" else {}
    return LLM(
        model=name,
        revision=revision,
        tokenizer_revision=revision,
        dtype=dtype,
        max_model_len=max_model_len,
        tensor_parallel_size=resources.tensor_parallel_size,
        # Processes of its own on the worker's GPUs; inside an actor it would take Ray's and wait for more GPUs.
        distributed_executor_backend="mp" if resources.tensor_parallel_size > 1 else None,
        gpu_memory_utilization=resources.gpu_memory_utilization,
        max_num_seqs=resources.max_num_seqs,
        enforce_eager=resources.enforce_eager,
        enable_prefix_caching=resources.prefix_caching,
        limit_mm_per_prompt={"audio": AUDIO_SEGMENTS, "image": 0, "video": 0},
        # Nothing of the checkpoint's own sampling settings.
        generation_config="vllm",
        # When a first token came is among the statistics.
        disable_log_stats=False,
        **mistral,
    )


def _processor(checkpoint: Mapping[str, Any], prompt_format: PromptFormat) -> Any:
    """The checkpoint's processor; None where Mistral's tokenizer writes the prompt."""
    if prompt_format.chat_template == "mistral_common":
        return None
    from models.loading import load_processor

    return load_processor(checkpoint)


def _stops(checkpoint: Mapping[str, Any], engine: Any) -> frozenset[int]:
    """Tokens that end a reply: the checkpoint's, and its tokenizer's."""
    from transformers import GenerationConfig

    name, revision = source(checkpoint)
    try:
        listed = GenerationConfig.from_pretrained(name, revision=revision or "main").eos_token_id
    except OSError:
        # A checkpoint without one ends where its language model's configuration says.
        listed = getattr(engine.model_config.hf_text_config, "eos_token_id", None)
    several = listed if isinstance(listed, list) else [listed]
    tokens = [*several, engine.get_tokenizer().eos_token_id]
    return frozenset(int(token) for token in tokens if token is not None)


def _sampling(generation: Generation, seed: int, stops: frozenset[int]) -> Any:
    from vllm import SamplingParams

    common = {"max_tokens": generation.max_new_tokens, "stop_token_ids": sorted(stops), "detokenize": False}
    if not generation.do_sample:
        return SamplingParams(**common, temperature=0.0)
    return SamplingParams(
        **common,
        temperature=generation.temperature,
        top_p=generation.top_p,
        top_k=generation.top_k or 0,
        seed=seed,
    )


def _first_token(metrics: Any, started_at_s: float) -> Event:
    """When the reply's first token was there."""
    if metrics is None or not metrics.first_token_latency:
        return Event(
            t_s=None, clock="wall", actor="model", kind="first_token", data="vLLM gave no statistics"
        )
    t_s = metrics.arrival_time - started_at_s + metrics.first_token_latency
    return Event(t_s=t_s, clock="wall", actor="model", kind="first_token")
