"""What batching gains: tiny checkpoints through the farm, against the loop that published runners use.

The loop asks one request after another with the processor's defaults and the model's own `generate`. The farm is the
farm: a Ray worker that hears ahead and batches, rows written to a store. Both decode the same sound files, greedily, to
the same number of tokens.

Invariant: a ratio is only given where both sides wrote the same replies. Tiny models say what batches and padding cost
on a CPU; how much a GPU gains is measured by `bench/gpu_check.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import audio
from bench.engine_cost import run_farm
from bench.figures import Figure
from bench.standins import RATE_HZ
from farm.store import Store
from farm.types import AudioSegment, Item, ModelSpec, Prompt, Request, Stimulus, TextSegment

os.environ["OMP_NUM_THREADS"] = "1"

REQUESTS = 64
TOKENS = 48
SPEECH_CODES = 100
SHORTEST_S, LONGEST_S = 1.0, 10.0
QUESTION = "How does the speaker feel about the weather this morning?"
AUDIO_AND_QUESTION = [{"type": "audio"}, {"type": "text", "text": QUESTION}]


@dataclass(slots=True, kw_only=True)
class Clips:
    """A task of noise clips of many lengths, each with the same question."""

    paths: tuple[Path, ...]
    system: str | None = ""
    name: str = "bench.clips"
    benchmark: str = "bench"

    def items(self) -> list[Item]:
        """An item a clip."""
        return [self._item(path) for path in self.paths]

    def _item(self, path: Path) -> Item:
        probe = audio.probe(str(path))
        clip = AudioSegment(role="question", path=str(path), sha256=probe.sha256, seconds=probe.seconds)
        turn = (clip, TextSegment(role="question", text=QUESTION))
        stimulus = Stimulus(turns=(turn,))
        return Item(
            key=path.stem,
            benchmark=self.benchmark,
            task=self.name,
            unit=path.stem,
            pair_id=path.stem,
            stimulus=stimulus,
        )

    def template(self, prompt: Prompt) -> str:
        """No words."""
        return ""

    def request(self, item: Item, prompt: Prompt) -> Request:
        """The clip and the question."""
        return Request(system=self.system, turns=item.stimulus.turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How fast one side was, and what it wrote for each clip."""

    requests_per_s: float
    texts: Mapping[str, str]


def write_clips(folder: Path, count: int) -> tuple[Path, ...]:
    """Sound files of noise, between the shortest and the longest, every one of another length."""
    import soundfile

    paths = []
    generator = np.random.default_rng(0)
    for number, seconds in enumerate(np.linspace(SHORTEST_S, LONGEST_S, count)):
        path = folder / f"clip{number:03d}.wav"
        noise = generator.normal(scale=0.1, size=int(seconds * RATE_HZ)).astype(np.float32)
        soundfile.write(path, noise, RATE_HZ, subtype="FLOAT")
        paths.append(path)
    return tuple(paths)


def spec(option: str, changes: Mapping[str, Any]) -> ModelSpec:
    """A shipped option as a model of a sweep, its generation settings changed."""
    from hydra import compose, initialize_config_dir

    from jobs import config

    config.register_resolvers()
    with initialize_config_dir(str(config.ROOT / "conf"), version_base="1.3"):
        chosen = config.plain(compose("sweep", overrides=[f"model=[{option}]"]))["models"][option]
    chosen["adapter"] = {**chosen["adapter"], **changes}
    made = config.model_spec(option, chosen)
    return replace(made, workers=replace(made.workers, max_batch=32))


def through_the_farm(model: ModelSpec, task: Clips) -> Run:
    """The farm's rate from the first batch to the last durable row, on the cluster that is connected."""
    ended: list[float] = []
    with TemporaryDirectory() as folder:
        run_farm(model, task, folder, on_kept=lambda _: ended.append(time.time()))
        rows = Store.open(f"{folder}/store", create=False).replies().to_pylist()
    began_s = min(datetime.fromisoformat(row["started_at"]).timestamp() for row in rows)
    texts = {row["item_key"]: row["text"] for row in rows}
    return Run(requests_per_s=len(rows) / (ended[-1] - began_s), texts=texts)


def by_the_loop(task: Clips, answer: Callable[[str, Any], str]) -> Run:
    """One clip after another.

    Args:
        task: whose clips are decoded here.
        answer: from a clip's key and its samples (16 kHz) to a text.
    """
    import soundfile

    first, _ = soundfile.read(task.paths[0], dtype="float32")
    answer("warm-up", first)
    began_s = time.perf_counter()
    texts = {}
    for path in task.paths:
        samples, _ = soundfile.read(path, dtype="float32")
        texts[path.stem] = answer(path.stem, samples)
    return Run(requests_per_s=len(texts) / (time.perf_counter() - began_s), texts=texts)


def published_loop(
    model_class: str, folder: str, system: str = "", **options: Any
) -> Callable[[str, Any], str]:
    """The way of model cards: template, processor with its defaults, `generate`, one request at a time.

    Args:
        model_class: of transformers.
        folder: of the checkpoint.
        system: prompt.
        options: of `generate`.
    """
    import torch
    import transformers

    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    model = getattr(transformers, model_class).from_pretrained(folder, dtype=torch.float32).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)

    def answer(_: str, samples: Any) -> str:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": AUDIO_AND_QUESTION}]
        text = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        inputs = processor(text=text, audio=[samples], return_tensors="pt")
        with torch.inference_mode():
            made = model.generate(**inputs, **options)
        tokens = made[0] if isinstance(made, tuple) else made
        said: str = processor.tokenizer.decode(
            tokens[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True
        )
        return said.strip()

    return answer


def ratio(name: str, farm: Run, loop: Run, goal: float) -> list[Figure]:
    """Farm over loop, and the share of replies that are the same; both are figures."""
    same = sum(farm.texts[key] == text for key, text in loop.texts.items()) / len(loop.texts)
    assert len(set(loop.texts.values())) > len(loop.texts) / 2, "replies that are all alike prove nothing"
    return [
        Figure(name=f"{name}.same_replies", value=same, goal=1, better="higher"),
        Figure(
            name=f"{name}.farm_over_loop",
            value=farm.requests_per_s / loop.requests_per_s,
            goal=goal,
            better="higher",
        ),
    ]


def text_speed(name: str, option: str, model_class: str, goal: float, requests: int) -> list[Figure]:
    """One text model both ways."""
    model = spec(option, {"generation": {"max_new_tokens": TOKENS, "do_sample": False}})
    with TemporaryDirectory() as folder:
        task = Clips(paths=write_clips(Path(folder), requests))
        through = through_the_farm(model, task)
        folder_of = str(model.adapter["checkpoint"]["path"])
        options: dict[str, Any] = {"do_sample": False, "max_new_tokens": TOKENS}
        loop = by_the_loop(task, published_loop(model_class, folder_of, **options))
    return ratio(name, through, loop, goal)


def qwen2_audio(*, requests: int = REQUESTS) -> list[Figure]:
    """Qwen2-Audio: text."""
    return text_speed("qwen2_audio", "tiny_qwen2_audio", "Qwen2AudioForConditionalGeneration", 1.2, requests)


def audio_flamingo3(*, requests: int = REQUESTS) -> list[Figure]:
    """Audio Flamingo 3: text."""
    return text_speed(
        "audio_flamingo3", "tiny_audio_flamingo3", "AudioFlamingo3ForConditionalGeneration", 1.2, requests
    )


def qwen2_5_omni(*, requests: int = REQUESTS) -> list[Figure]:
    """Qwen2.5-Omni: text by its thinker, the goal; then with its voice, without one."""
    thinker = "Qwen2_5OmniThinkerForConditionalGeneration"
    return [
        *text_speed("qwen2_5_omni_text", "tiny_qwen2_5_omni_text", thinker, 5, requests),
        *_with_speech(requests // 2),
    ]


def _with_speech(requests: int) -> list[Figure]:
    greedy = {"do_sample": False}
    changes = {
        "generation": {"max_new_tokens": TOKENS, **greedy},
        "talker": {"max_new_tokens": SPEECH_CODES, **greedy},
    }
    model = spec("tiny_qwen2_5_omni", changes)
    options = {
        "thinker_do_sample": False,
        "thinker_max_new_tokens": TOKENS,
        "talker_do_sample": False,
        "talker_max_new_tokens": SPEECH_CODES,
        "talker_eos_token_id": [64, 66],
    }
    with TemporaryDirectory() as folder:
        task = Clips(paths=write_clips(Path(folder), requests))
        through = through_the_farm(model, task)
        loop = by_the_loop(
            task,
            published_loop(
                "Qwen2_5OmniForConditionalGeneration",
                str(model.adapter["checkpoint"]["path"]),
                model.adapter["prompt_format"]["system_prefix"],
                **options,
            ),
        )
    return ratio("qwen2_5_omni_speech", through, loop, 1)
