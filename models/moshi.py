"""Moshi, one turn at a time: the user speaks while Moshi is silent, then Moshi speaks while the user is.

The Hugging Face class cannot do more: it holds Moshi's stream at silence through the prompt. Full duplex needs another
protocol and Kyutai's own code. Source: Défossez et al., Moshi (arXiv:2410.00037).

Moshi reads a frame of both streams every 80 ms, so silence is input: what stands before the user's words changes the
answer, and nothing can mask it. Every request is therefore padded on the left to a multiple of `pad_to_s`, whatever its
batch, and only requests of one padded length run together. Its stream never ends; it answers for a fixed time.

Invariant: in float32 text and samples of a reply depend on its request alone. Text in a request does not reach it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import audio
from farm.checkpoints import source
from farm.types import Event, Failure, Reply, Request, Waveform
from models import loading
from models.conversation import noise_request, waveforms
from models.decoding import Generation, RowSampler

if TYPE_CHECKING:
    from torch import Tensor

CODES_SEED = 0x3050
"""Makes the codes' draws other than the text's from one request's seed."""


class Moshi:
    """One checkpoint; answers in text and speech.

    Args:
        checkpoint: A Hugging Face folder (`path`), or `repo` and `revision`.
        generation: Of the text stream: the settings of `models.decoding.Generation`; `max_new_tokens` is how many
            frames it answers for (12.5 a second).
        codes: Of the speech codes: the same settings without `max_new_tokens`.
        pad_to_s: Requests are padded to a multiple of this many seconds.
        dtype: `float32`, `bfloat16` or `float16`.
        attention: `sdpa`, `eager` or `flash_attention_2`.
        device: torch's name.

    Raises:
        ValueError: wrong settings, or a checkpoint that lies nowhere.
    """

    version = "1"

    @classmethod
    def check(cls, arguments: Mapping[str, Any]) -> None:
        """Refuses settings before anything is loaded; raises ValueError."""
        loading.check(arguments)
        Generation.parse(arguments.get("generation", {}))
        Generation.parse({**(arguments.get("codes") or {}), "max_new_tokens": 1})
        if arguments.get("pad_to_s", 1) <= 0:
            raise ValueError(f"pad_to_s={arguments['pad_to_s']}: above 0")

    def __init__(
        self,
        *,
        checkpoint: Mapping[str, Any],
        generation: Mapping[str, Any],
        codes: Mapping[str, Any],
        pad_to_s: float,
        dtype: str,
        attention: str,
        device: str = "cpu",
    ) -> None:
        from transformers import AutoTokenizer

        name, revision = source(checkpoint)
        self._tokenizer = AutoTokenizer.from_pretrained(name, **({"revision": revision} if revision else {}))
        placement = loading.Placement(dtype=dtype, attention=attention, device=device)
        self._model = loading.load("MoshiForConditionalGeneration", checkpoint, placement)
        # No end: Moshi's stream goes on, and a row that ended alone would wait on its neighbours.
        loading.forget_sampling(self._model, self._tokenizer, frozenset())
        config = self._model.config
        self._rate_hz = int(config.sampling_rate)
        self._frame = int(config.sampling_rate / config.audio_encoder_config.frame_rate)
        self._pad_frames = max(1, round(pad_to_s * self._rate_hz / self._frame))
        self._generation = Generation.parse(generation)
        frames = self._generation.max_new_tokens
        self._codes = Generation.parse({**codes, "max_new_tokens": frames * config.num_codebooks})
        self._room = loading.context_tokens(self._model.decoder) - frames - 1
        self._warm_up()

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers a batch, one padded length after another; see `farm.types.SpeechModel`."""
        clips = [self._clip(request) for request in requests]
        frames = [len(clip) // self._frame for clip in clips]
        replies: dict[int, Reply] = {}
        for length in sorted(set(frames)):
            rows = [row for row, count in enumerate(frames) if count == length]
            answered = self._answer([clips[row] for row in rows], [requests[row].seed for row in rows])
            replies.update(zip(rows, answered, strict=True))
        return [replies[row] for row in range(len(requests))]

    def _clip(self, request: Request) -> npt.NDArray[np.float32]:
        """The request's audio on end, silence before it up to a whole multiple of frames."""
        pieces = [audio.resample(w, self._rate_hz).samples for w in waveforms(request)]
        spoken = np.concatenate(pieces) if pieces else np.zeros(1, np.float32)
        step = self._pad_frames * self._frame
        return np.pad(spoken, (-len(spoken) % step, 0))

    def _answer(self, clips: Sequence[npt.NDArray[np.float32]], seeds: Sequence[int]) -> list[Reply]:
        import torch

        frames = len(clips[0]) // self._frame
        if frames > self._room:
            message = f"{frames} frames of audio; the context has room for {self._room}"
            return [Reply(failure=Failure(kind="input_error", message=message))] * len(clips)
        started_s = time.perf_counter()
        sampler = RowSampler(seeds, self._generation)
        user = torch.from_numpy(np.stack(clips))[:, None].to(self._model.device, self._model.dtype)
        with torch.inference_mode():
            made = self._generate(user, frames, seeds, sampler)
            # One by one: a codec's convolutions round otherwise in another batch.
            spoken = [self._decoded(row, frames) for row in made.audio_codes]
        assert sampler.first_token_at_s is not None, "generate made no token"
        first_token_s = sampler.first_token_at_s - started_s
        texts = made.sequences[:, -self._generation.max_new_tokens :].tolist()
        ended_s = time.perf_counter() - started_s
        return [
            self._reply(tokens, samples, frames, first_token_s, ended_s)
            for tokens, samples in zip(texts, spoken, strict=True)
        ]

    def _generate(self, user: Tensor, frames: int, seeds: Sequence[int], sampler: RowSampler) -> Any:
        import torch

        silent_text = torch.full((len(user), frames), self._model.generation_config.pad_token_id)
        ids = silent_text.to(self._model.device)
        return self._model.generate(
            input_ids=ids,
            # Without it every one of these padding tokens is masked, and the user's audio with it.
            attention_mask=torch.ones_like(ids),
            user_input_values=user,
            moshi_input_values=torch.zeros_like(user),
            return_audio_waveforms=False,
            return_audio_codes=True,
            max_new_tokens=self._generation.max_new_tokens,
            do_sample=False,
            logits_processor=[sampler],
            depth_decoder_do_sample=False,
            depth_decoder_logits_processor=[RowSampler([s ^ CODES_SEED for s in seeds], self._codes)],
        )

    def _decoded(self, codes: Tensor, frames: int) -> npt.NDArray[np.float32]:
        """The answer's samples; the prompt comes back in front of it, in codes as in tokens."""
        samples = self._model.audio_encoder.decode(codes[None]).audio_values[0, 0]
        spoken: npt.NDArray[np.float32] = samples[frames * self._frame :].float().cpu().numpy()
        return spoken

    def _reply(
        self,
        tokens: list[int],
        samples: npt.NDArray[np.float32],
        frames: int,
        first_token_s: float,
        ended_s: float,
    ) -> Reply:
        return Reply(
            text=self._tokenizer.decode(tokens, skip_special_tokens=True).strip(),
            speech=Waveform(samples=samples, sample_rate_hz=self._rate_hz),
            events=(
                Event(t_s=first_token_s, clock="wall", actor="model", kind="first_token"),
                # The codec decodes all frames at the end.
                Event(t_s=ended_s, clock="wall", actor="model", kind="speech_onset"),
            ),
            tokens_in=frames,
            tokens_out=len(tokens),
        )

    def _warm_up(self) -> None:
        """Two frames of an answer: kernels are compiled and chosen now, and wrong settings end the loading."""
        generation = self._generation
        self._generation = replace(generation, max_new_tokens=2)
        self.answer([noise_request(self._frame / self._rate_hz, self._rate_hz)])
        self._generation = generation
