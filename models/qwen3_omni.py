"""Qwen3-Omni with its voice: text by the thinker, frames of 16 codes by talker and code predictor, a causal vocoder.

For text alone load its thinker with `models.chat_audio.ChatAudio`.

As with Qwen2.5-Omni the batch is put together here. The model's own `generate` (transformers 5.19) ends the text that
the talker reads one entry later for the shorter rows of a batch than for a row alone, samples the codes of all rows
from one generator, and breaks where a reply has no text.

Invariant: in float32 text and samples of a reply depend on its request alone. Source: Xu et al., Qwen3-Omni Technical
Report (arXiv:2509.17765), section 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from farm.types import Waveform
from models.audio_inputs import Inputs
from models.chat_audio import Written
from models.decoding import RowSampler
from models.qwen_omni import REPETITION_PENALTY, SAMPLE_RATE_HZ, TALKER_SEED, QwenOmni, Thought, listening

if TYPE_CHECKING:
    from torch import Tensor

PREDICTOR_SEED = 0xC0DE
"""Makes the code predictor draw otherwise than thinker and talker from one request's seed."""
RESERVED = 1024
"""The last so many ids of the talker's vocabulary are no codes; it may say only the end among them."""
ASSISTANT_TOKENS = 3
"""The start of the reply's turn: start token, role, line feed."""
CHUNK_FRAMES, CONTEXT_FRAMES = 300, 25
"""How the vocoder is fed, as the model's own code has it."""


class Qwen3Omni(QwenOmni):
    """One checkpoint with thinker, talker and code2wav; arguments are those of `models.qwen_omni.QwenOmni`.

    The settings `talker` draw both the first code of a frame and the other 15.
    """

    version = "1"
    model_class = "Qwen3OmniMoeForConditionalGeneration"

    def _take_voice(self, checkpoint: Mapping[str, Any], voice: str) -> int:
        voices: Mapping[str, int] = self._model.config.talker_config.speaker_id or {}
        if voice.lower() not in voices:
            raise ValueError(f"voice={voice}: one of {', '.join(voices)}")
        self._model.code2wav.float()
        return voices[voice.lower()]

    def _listening(self, thought: Thought) -> AbstractContextManager[None]:
        """The talker reads a layer in the middle."""
        model = self._thinker.model
        return listening(
            thought, model, model.layers[self._model.config.talker_config.accept_hidden_layer - 1]
        )

    # --- talker ------------------------------------------------------------------------------------------------------

    def _talk(
        self, inputs: Inputs, written: Written, thought: Thought, rows: list[int], seeds: Sequence[int]
    ) -> list[tuple[list[Any], bool]]:
        """Frames of 16 codes of the given rows, each with whether it was cut at the limit."""
        import torch

        config = self._model.config.talker_config
        drawn = [seeds[row] ^ TALKER_SEED for row in rows]
        with _drawing(self._talker.code_predictor, self._predictor_sampler(drawn)):
            made = self._talker.generate(
                **self._talker_inputs(inputs, written, thought, rows),
                max_new_tokens=self._talking.max_new_tokens,
                do_sample=False,
                repetition_penalty=REPETITION_PENALTY,
                eos_token_id=config.codec_eos_token_id,
                pad_token_id=config.codec_eos_token_id,
                suppress_tokens=self._reserved_codes(),
                logits_processor=[RowSampler(drawn, self._talking)],
                output_hidden_states=True,
                return_dict_in_generate=True,
            )
        # A step's whole frame is known when the next step begins.
        frames = [step[-1] for step in made.hidden_states if step[-1] is not None]
        if not frames:
            return [([], False)] * len(rows)
        heard = torch.stack(frames, dim=1).tolist()
        return [
            _cut(row, config.codec_eos_token_id, self._ended(made, index)) for index, row in enumerate(heard)
        ]

    def _ended(self, made: Any, index: int) -> bool:
        return bool((made.sequences[index] == self._model.config.talker_config.codec_eos_token_id).any())

    def _reserved_codes(self) -> list[int]:
        config = self._model.config.talker_config
        size = config.text_config.vocab_size
        return [
            code for code in range(size - RESERVED, size) if code >= 0 and code != config.codec_eos_token_id
        ]

    def _predictor_sampler(self, seeds: Sequence[int]) -> RowSampler:
        others = self._model.config.talker_config.num_code_groups - 1
        limit = self._talking.max_new_tokens * others
        return RowSampler([s ^ PREDICTOR_SEED for s in seeds], replace(self._talking, max_new_tokens=limit))

    def _talker_inputs(
        self, inputs: Inputs, written: Written, thought: Thought, rows: list[int]
    ) -> dict[str, Any]:
        """The users' turns as the talker reads them, left-padded; the start of the reply's turn; the text to come."""
        import torch

        model = self._model
        ids = inputs["input_ids"][rows].to(thought.hidden[0].device)
        mask = inputs["attention_mask"][rows].to(ids.device)
        heard = ids == model.config.thinker_config.audio_token_id
        read = model._get_talker_user_parts(
            0, ids.shape[1], heard, thought.hidden[0][rows], thought.embedded[0][rows]
        )
        users = [read[index][self._user_turns(ids[index], mask[index])] for index in range(len(rows))]
        longest = max(len(user) for user in users)
        padded = torch.stack([torch.nn.functional.pad(u, (0, 0, longest - len(u), 0)) for u in users])
        user_mask = torch.tensor([[0] * (longest - len(u)) + [1] * len(u) for u in users], device=ids.device)
        start, coming = self._reply_parts(written, thought, rows)
        return {
            "inputs_embeds": torch.cat([padded, start], dim=1),
            "attention_mask": torch.cat([user_mask, user_mask.new_ones(start.shape[:2])], dim=1),
            "trailing_text_hidden": coming,
            "tts_pad_embed": self._spoken_marks()[2].expand(len(rows), 1, -1),
        }

    def _user_turns(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Which positions of a prompt stand in a user's turn, its start token included."""
        import torch

        config = self._model.config
        positions = torch.arange(len(ids), device=ids.device)
        starts = torch.where(ids == config.im_start_token_id, positions, -1).cummax(dim=0).values.clamp_min(0)
        roles = ids[(starts + 1).clamp_max(len(ids) - 1)]
        users: Tensor = (roles == config.user_token_id) & mask.bool()
        return users

    def _spoken_marks(self) -> tuple[Tensor, Tensor, Tensor]:
        """Begin, end and padding of text to speak, each of shape (1, 1, hidden size)."""
        import torch

        config = self._model.config
        ids = [[config.tts_bos_token_id, config.tts_eos_token_id, config.tts_pad_token_id]]
        embedded = self._thinker.get_input_embeddings()(torch.tensor(ids, device=self._thinker.device))
        begin, end, padding = self._talker.text_projection(embedded).chunk(3, dim=1)
        return begin, end, padding

    def _reply_parts(self, written: Written, thought: Thought, rows: list[int]) -> tuple[Tensor, Tensor]:
        """The turn's start with the reply's first token; then its tokens from the second on, its end, padding."""
        import torch

        begin, end, padding = self._spoken_marks()
        reply = torch.cat(thought.embedded[1:], dim=1)[rows]
        head = torch.cat([thought.embedded[0][rows, -ASSISTANT_TOKENS:], reply[:, :1]], dim=1)
        start, _, _ = self._model._get_talker_assistant_parts(
            0, head.shape[1], self._voice, head, padding, begin, end
        )
        text = self._talker.text_projection(reply)
        counts = [self._spoken_tokens(written, row) for row in rows]
        coming = padding.repeat(len(rows), max(counts), 1)
        for index, count in enumerate(counts):
            coming[index, : count - 1] = text[index, 1:count]
            coming[index, count - 1] = end[0, 0]
        return start, coming

    # --- code2wav ----------------------------------------------------------------------------------------------------

    def _waveform(self, codes: list[Any], seed: int) -> Waveform:
        """Nothing is drawn here: the vocoder is a function of the codes."""
        import torch

        vocoder = self._model.code2wav
        frames = torch.tensor(codes, device=next(vocoder.parameters()).device).T[None]
        samples = vocoder.chunked_decode(frames, chunk_size=CHUNK_FRAMES, left_context_size=CONTEXT_FRAMES)
        return Waveform(samples=samples.reshape(-1).float().cpu().numpy(), sample_rate_hz=SAMPLE_RATE_HZ)


def _cut(frames: list[list[int]], stop: int, ended: bool) -> tuple[list[Any], bool]:
    """A row's frames up to its end: those behind it were made while other rows still spoke."""
    for index, frame in enumerate(frames):
        if frame[0] == stop:
            return frames[:index], False
    return frames, not ended


@contextmanager
def _drawing(predictor: Any, sampler: RowSampler) -> Iterator[None]:
    """Within it the code predictor draws each row from the row's own seed."""
    generate = predictor.generate

    def drawn(**arguments: Any) -> Any:
        for shared in ("top_k", "top_p"):
            arguments.pop(shared, None)
        return generate(**{**arguments, "do_sample": False, "logits_processor": [sampler]})

    predictor.generate = drawn
    try:
        yield
    finally:
        del predictor.generate
