"""Qwen2.5-Omni with its voice: text by the thinker, codec tokens by the talker, a waveform by token2wav.

For text alone load its thinker with `models.chat_audio.ChatAudio`: the same text for a fraction of the memory.

The batch is put together here and not by the model's own `generate`, which (transformers 5.19)
- drops an attention mask of ones, whereupon the talker leaves out the codec's start and padding embeddings: speech of a
  batch without padding, every batch of one among them, is conditioned otherwise than that of a padded one;
- draws token2wav's noise for row after row from the global generator;
- keeps the hidden states of every layer at every step; and breaks where all rows stop at their first token.

Invariant: in float32 text and samples of a reply depend on its request alone. Source: Xu et al., Qwen2.5-Omni Technical
Report (arXiv:2503.20215), section 2.3.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from farm.checkpoints import source
from farm.types import Event, Reply, Request, Waveform
from models import loading
from models.audio_inputs import Inputs, PromptFormat, prepare
from models.chat_audio import WARM_UP_S, Written, answer_what_fits, text_replies, write
from models.conversation import noise_request
from models.decoding import Generation, RowSampler, cut

if TYPE_CHECKING:
    from torch import Tensor

SAMPLE_RATE_HZ = 24000
REPETITION_PENALTY = 1.05
"""Of the talker, as its model card and code have it."""
TALKER_SEED = 0x7A1C
"""Makes the talker draw otherwise than the thinker from one request's seed."""


@dataclass(slots=True)
class Thought:
    """What the talker needs of the thinker: what went into its language model and came out, at every step."""

    embedded: list[Tensor] = field(default_factory=list)
    """Shape (rows, tokens of the step, hidden size)."""
    hidden: list[Tensor] = field(default_factory=list)


class QwenOmni:
    """One checkpoint with thinker, talker and token2wav; answers in text and 24 kHz speech.

    Args:
        checkpoint: A Hugging Face folder (`path`), or `repo` and `revision`.
        voice: One of the checkpoint's speakers (`Chelsie`, `Ethan`).
        prompt_format: The fields of `models.audio_inputs.PromptFormat`. Its `system_prefix` must be the sentence that
            the model was trained to speak under; a prompt's own text comes after it.
        generation: Of the text: the settings of `models.decoding.Generation`.
        talker: Of the codec tokens (50 a second of speech): the same settings.
        dtype: `float32`, `bfloat16` or `float16`; token2wav is always in float32.
        attention: `sdpa`, `eager` or `flash_attention_2`.
        device_map: `auto` spreads the model over all visible GPUs; None puts it on one device.
        device: torch's name.

    Raises:
        ValueError: wrong settings, or no such voice.
    """

    version = "1"
    model_class = "Qwen2_5OmniForConditionalGeneration"
    """Of transformers."""

    @classmethod
    def check(cls, arguments: Mapping[str, Any]) -> None:
        """Refuses settings before anything is loaded; raises ValueError."""
        loading.check(arguments)
        Generation.parse(arguments.get("generation", {}))
        Generation.parse(arguments.get("talker", {}))
        PromptFormat.parse(arguments.get("prompt_format", {}))

    def __init__(
        self,
        *,
        checkpoint: Mapping[str, Any],
        voice: str,
        prompt_format: Mapping[str, Any],
        generation: Mapping[str, Any],
        talker: Mapping[str, Any],
        dtype: str,
        attention: str,
        device_map: str | None = None,
        device: str = "cpu",
    ) -> None:
        placement = loading.Placement(dtype=dtype, attention=attention, device=device, device_map=device_map)
        self._format = PromptFormat.parse(prompt_format)
        self._generation = Generation.parse(generation)
        self._talking = Generation.parse(talker)
        self._processor = loading.load_processor(checkpoint)
        self._model = loading.load(self.model_class, checkpoint, placement)
        self._thinker, self._talker = self._model.thinker, self._model.talker
        self._voice = self._take_voice(checkpoint, voice)
        self._stops = loading.stop_tokens(self._thinker, self._processor.tokenizer)
        loading.forget_sampling(self._thinker, self._processor.tokenizer, self._stops)
        self._room = loading.context_tokens(self._thinker) - self._generation.max_new_tokens
        self._warm_up()

    def _take_voice(self, checkpoint: Mapping[str, Any], voice: str) -> Any:
        """What makes the talker speak in a voice; the talker and the vocoder are made ready."""
        _keep_mask(self._talker)
        self._model.token2wav.float()
        return _voice(checkpoint, voice)

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers a batch; see `farm.types.SpeechModel`."""
        inputs = prepare(self._processor, self._format, requests)
        fitting = answer_what_fits(inputs, requests, self._room, self.answer)
        return self._answer(requests, inputs) if fitting is None else fitting

    def _answer(self, requests: Sequence[Request], inputs: Inputs) -> list[Reply]:
        import torch

        started_s = time.perf_counter()
        thought = Thought()
        with self._listening(thought):
            written = write(self._thinker, inputs, [r.seed for r in requests], self._generation)
        replies = text_replies(self._processor, inputs, written, self._stops, started_s)
        text_end_s = time.perf_counter() - started_s
        spoken = [row for row in range(len(requests)) if self._spoken_tokens(written, row)]
        with torch.inference_mode():
            codes = self._talk(inputs, written, thought, spoken, [r.seed for r in requests]) if spoken else []
            said = dict(zip(spoken, codes, strict=True))
            return [
                self._with_speech(reply, said.get(row), requests[row].seed, started_s, text_end_s)
                for row, reply in enumerate(replies)
            ]

    def _spoken_tokens(self, written: Written, row: int) -> int:
        """How many of a row's tokens the talker reads: those that the thinker went on from."""
        tokens, _ = cut(written.tokens[row], self._stops)
        return min(len(tokens), len(written.tokens[row]) - 1)

    def _listening(self, thought: Thought) -> AbstractContextManager[None]:
        """Keeps what goes into the thinker's language model and what comes out."""
        model = self._thinker.model
        return listening(thought, entrance=model, exit_=model)

    # --- talker ------------------------------------------------------------------------------------------------------

    def _talk(
        self, inputs: Inputs, written: Written, thought: Thought, rows: list[int], seeds: Sequence[int]
    ) -> list[tuple[list[Any], bool]]:
        """Codec tokens of the given rows, each with whether it was cut at the limit."""
        talker = self._talker
        prompt = self._talker_prompt(inputs, written, thought, rows)
        generated = talker.generate(
            **prompt,
            thinker_reply_part=self._reply_stream(written, thought, rows),
            suppress_tokens=[talker.codec_bos_token],
            max_new_tokens=self._talking.max_new_tokens,
            do_sample=False,
            repetition_penalty=REPETITION_PENALTY,
            eos_token_id=[talker.codec_pad_token, talker.codec_eos_token],
            pad_token_id=talker.codec_pad_token,
            logits_processor=[RowSampler([seeds[row] ^ TALKER_SEED for row in rows], self._talking)],
        )
        stops = frozenset({talker.codec_pad_token, talker.codec_eos_token})
        codes = generated[:, prompt["input_ids"].shape[1] :].tolist()
        return [cut(row, stops) for row in codes]

    def _talker_prompt(
        self, inputs: Inputs, written: Written, thought: Thought, rows: list[int]
    ) -> dict[str, Any]:
        """The thinker's prompt as the talker reads it, then the voice's start token and the reply's first token."""
        import torch

        device = thought.hidden[0].device
        ids = inputs["input_ids"][rows].to(device)
        count = len(rows)
        start = torch.full((count, 1), self._voice["bos_token"], dtype=torch.long, device=device)
        first = torch.tensor([[written.tokens[row][0]] for row in rows], device=device)
        heard = (ids == self._model.config.thinker_config.audio_token_index)[..., None]
        prompt = thought.hidden[0][rows] + thought.embedded[0][rows].masked_fill(heard, 0.0)
        started = self._thinker.get_input_embeddings()(start)
        codec = torch.tensor([self._talker.codec_pad_token, self._talker.codec_bos_token], device=device)
        mask = inputs["attention_mask"][rows].to(device)
        return {
            "input_ids": torch.cat(
                [torch.full_like(ids, self._talker.codec_mask_token), codec.expand(count, 2)], dim=1
            ),
            "input_text_ids": torch.cat([ids, start, first], dim=1),
            "inputs_embeds": torch.cat([prompt, started, _reply(thought)[rows, :1]], dim=1),
            "attention_mask": torch.cat([mask, mask.new_ones(count, 2)], dim=1),
            "audio_feature_lengths": self._audio_lengths(inputs, rows, device),
        }

    def _audio_lengths(self, inputs: Inputs, rows: list[int], device: Any) -> Tensor | None:
        """Feature frames of every clip of these rows."""
        if "feature_attention_mask" not in inputs:
            return None
        start_token = self._model.config.thinker_config.audio_start_token_id
        owners = [
            row
            for row, clips in enumerate((inputs["input_ids"] == start_token).sum(dim=1).tolist())
            for _ in range(clips)
        ]
        kept = [clip for clip, owner in enumerate(owners) if owner in set(rows)]
        lengths: Tensor = inputs["feature_attention_mask"].sum(dim=1)[kept].to(device)
        return lengths

    def _reply_stream(self, written: Written, thought: Thought, rows: list[int]) -> Tensor:
        """What is added to each codec token's embedding: the reply's tokens from the second on, its end, then padding.

        Shape (rows, longest reply + 1, hidden size); the talker repeats the last.
        """
        import torch

        reply = _reply(thought)
        embed = self._thinker.get_input_embeddings()
        ids = torch.tensor([self._talker.text_eos_token, self._talker.text_pad_token], device=reply.device)
        end, padding = embed(ids)
        counts = [self._spoken_tokens(written, row) for row in rows]
        stream: Tensor = padding.repeat(len(rows), max(counts) + 1, 1)
        for index, (row, count) in enumerate(zip(rows, counts, strict=True)):
            stream[index, : count - 1] = reply[row, 1:count]
            stream[index, count - 1] = end
        return stream

    # --- token2wav ---------------------------------------------------------------------------------------------------

    def _with_speech(
        self,
        reply: Reply,
        codes: tuple[list[Any], bool] | None,
        seed: int,
        started_s: float,
        text_end_s: float,
    ) -> Reply:
        text_end = Event(t_s=text_end_s, clock="wall", actor="thinker", kind="text_end")
        if codes is None or not codes[0]:
            silent = "no text to speak" if codes is None else "the talker gave no code"
            onset = Event(t_s=None, clock="wall", actor="talker", kind="speech_onset", data=silent)
            return replace(reply, events=(*reply.events, text_end, onset))
        speech = self._waveform(codes[0], seed)
        # Nothing streams: a row's speech is there when all of it is.
        onset = Event(t_s=time.perf_counter() - started_s, clock="wall", actor="talker", kind="speech_onset")
        return replace(
            reply,
            speech=speech,
            events=(*reply.events, text_end, onset),
            truncated=reply.truncated or codes[1],
        )

    def _waveform(self, codes: list[Any], seed: int) -> Waveform:
        """Token2wav starts from noise: the request's own."""
        import torch

        token2wav = self._model.token2wav
        device = next(token2wav.parameters()).device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            samples = token2wav(
                torch.tensor([codes], device=device),
                conditioning=self._voice["cond"].to(device).float(),
                reference_mel=self._voice["ref_mel"].to(device).float(),
            )
        return Waveform(samples=samples.reshape(-1).float().cpu().numpy(), sample_rate_hz=SAMPLE_RATE_HZ)

    def _warm_up(self) -> None:
        """One short reply, spoken: kernels are compiled and chosen now, and wrong settings end the loading."""
        generation, talking = self._generation, self._talking
        self._generation = replace(generation, max_new_tokens=2)
        self._talking = replace(talking, max_new_tokens=2)
        request = noise_request(WARM_UP_S, self._format.sample_rate_hz)
        inputs = prepare(self._processor, self._format, [request])
        self._answer([request], inputs)
        self._generation, self._talking = generation, talking


def _voice(checkpoint: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A speaker's start token, conditioning vector and reference spectrogram."""
    import torch
    from transformers.utils import cached_file

    place, revision = source(checkpoint)
    voices = torch.load(cached_file(place, "spk_dict.pt", revision=revision), weights_only=True)
    if name not in voices:
        raise ValueError(f"voice={name}: one of {', '.join(voices)}")
    voice: Mapping[str, Any] = voices[name]
    return voice


def _reply(thought: Thought) -> Tensor:
    """The thinker's state at each of its own tokens but the last, which it does not go on from."""
    import torch

    return torch.cat(thought.hidden[1:], dim=1) + torch.cat(thought.embedded[1:], dim=1)


@contextmanager
def listening(thought: Thought, entrance: Any, exit_: Any) -> Iterator[None]:
    """Keeps what goes into one module (`inputs_embeds`) and what comes out of another, at every step.

    Args:
        thought: Filled.
        entrance: The language model.
        exit_: The language model too, or one of its layers.
    """

    def keep_input(module: Any, args: Any, kwargs: Any) -> None:
        thought.embedded.append(kwargs["inputs_embeds"])

    def keep_output(module: Any, args: Any, output: Any) -> None:
        last = getattr(output, "last_hidden_state", output)
        thought.hidden.append(last[0] if isinstance(last, tuple) else last)

    hooks = [
        entrance.register_forward_pre_hook(keep_input, with_kwargs=True),
        exit_.register_forward_hook(keep_output),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _keep_mask(talker: Any) -> None:
    """Puts back the attention mask of ones that `generate` drops, so that the talker sees every batch alike."""
    import torch

    forward = talker.forward

    @functools.wraps(forward)
    def masked(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("attention_mask") is None:
            cache = kwargs.get("past_key_values")
            past = cache.get_seq_length() if cache is not None else 0
            given = (
                kwargs["inputs_embeds"] if kwargs.get("inputs_embeds") is not None else kwargs["input_ids"]
            )
            kwargs["attention_mask"] = torch.ones(
                given.shape[0], past + given.shape[1], dtype=torch.long, device=given.device
            )
        return forward(*args, **kwargs)

    talker.forward = masked
