"""Batched decoding of a causal language model in which every row is on its own.

Invariant: a row's tokens depend on its prompt and its seed, not on its neighbours, their order or the padding, up to
the rounding of the forward pass (in float32 far too small to change a token in practice; in bfloat16 it can).

Each sampled token takes one uniform number from its own row's generator and inverts the cumulative distribution at it.
`generate()` of transformers draws all rows from one generator, so that a row's draw depends on where it stands: it is
only ever asked to be greedy here, and a `RowSampler` leaves it one token a row to be greedy about.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farm.settings import built

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """How a reply is drawn; all of it enters the trial id through the configuration."""

    max_new_tokens: int
    do_sample: bool = False
    """False is greedy: temperature and top_p then have no effect."""
    temperature: float = 1.0
    top_p: float = 1.0
    """The smallest set of most likely tokens whose probability reaches this (Holtzman et al., arXiv:1904.09751)."""
    top_k: int | None = None
    """At most so many of the most likely tokens; None is all (Fan et al., arXiv:1805.04833)."""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Generation:
        """The settings of a configuration.

        Raises:
            ValueError: an unknown key, or a value outside its range.
        """
        generation = built(cls, values, "generation")
        if generation.max_new_tokens < 1 or generation.temperature <= 0 or not 0 < generation.top_p <= 1:
            raise ValueError(f"{generation}: max_new_tokens >= 1, temperature > 0, 0 < top_p <= 1")
        if generation.top_k is not None and generation.top_k < 1:
            raise ValueError(f"{generation}: top_k >= 1, or null for all tokens")
        return generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What was decoded for each row."""

    tokens: list[list[int]]
    """Without the stop token."""
    truncated: list[bool]
    """No stop token came within the limit."""
    first_token_s: float
    """Seconds from the call to the first token; all rows have it at once."""


def decode(
    model: Any,
    prompts: Sequence[Sequence[int]],
    seeds: Sequence[int],
    stops: frozenset[int],
    generation: Generation,
) -> Decoded:
    """Continues every prompt until a stop token or the limit.

    Args:
        model: A causal language model of transformers, in evaluation mode.
        prompts: Token ids of each row, none empty.
        seeds: Of each row's sampling.
        stops: Tokens that end a reply.
        generation: Limit, temperature, top_p and top_k.
    """
    import torch

    started = time.perf_counter()
    first_token_s = 0.0
    replies: list[list[int]] = [[] for _ in prompts]
    running = [True] * len(prompts)
    drawn = uniforms(seeds, generation)
    tokens, mask = _left_padded(prompts, model.device)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    cache = None
    with torch.inference_mode():
        for step in range(generation.max_new_tokens):
            output = model(
                input_ids=tokens,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache = output.past_key_values
            chosen = next_tokens(output.logits[:, -1], drawn[:, step], generation)
            for row, token in enumerate(chosen.tolist()):
                running[row] = running[row] and token not in stops
                if running[row]:
                    replies[row].append(token)
            first_token_s = first_token_s or time.perf_counter() - started
            if not any(running):
                break
            tokens, positions = chosen[:, None], positions[:, -1:] + 1
            mask = torch.cat([mask, mask.new_ones(len(prompts), 1)], dim=-1)
    return Decoded(tokens=replies, truncated=running, first_token_s=first_token_s)


class RowSampler:
    """A logits processor for `generate(do_sample=False)`: each row's next token is drawn from the row's own seed.

    Must be the last processor. One object for one call of `generate`.

    Args:
        seeds: Of each row's sampling.
        generation: Limit, temperature, top_p and top_k; greedy settings leave the scores as they are.
    """

    def __init__(self, seeds: Sequence[int], generation: Generation) -> None:
        self._uniforms = uniforms(seeds, generation) if generation.do_sample else None
        self._generation = generation
        self._step = 0
        self.first_token_at_s: float | None = None
        """`time.perf_counter()` when the first tokens were chosen."""

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Scores of shape (rows, vocabulary) in which only the drawn token is left."""
        import torch

        if self.first_token_at_s is None:
            self.first_token_at_s = time.perf_counter()
        if self._uniforms is None:
            return scores
        chosen = next_tokens(scores, self._uniforms[:, self._step], self._generation)
        self._step += 1
        return torch.full_like(scores, -torch.inf).scatter_(-1, chosen[:, None], 0.0)


def cut(tokens: Sequence[int], stops: frozenset[int]) -> tuple[list[int], bool]:
    """A row of `generate` up to its stop token: (tokens without it, whether none came)."""
    for index, token in enumerate(tokens):
        if token in stops:
            return list(tokens[:index]), False
    return list(tokens), True


def next_tokens(logits: Tensor, uniforms: Tensor, generation: Generation) -> Tensor:
    """One token a row: the likeliest, or the one at the row's uniform number in its own distribution.

    Args:
        logits: shape (rows, vocabulary).
        uniforms: shape (rows,), in [0, 1).
        generation: Temperature, top_p and top_k.

    Returns:
        Token ids, shape (rows,).
    """
    import torch

    if not generation.do_sample:
        return logits.argmax(dim=-1)
    # In double precision: a running sum over 100,000 small probabilities must not depend on the order of summation.
    probabilities = torch.softmax(logits.double() / generation.temperature, dim=-1)
    ordered, tokens = probabilities.sort(dim=-1, descending=True, stable=True)
    reached = ordered.cumsum(dim=-1)
    kept = torch.where(reached - ordered < generation.top_p, ordered, 0.0)
    if generation.top_k is not None:
        kept[:, generation.top_k :] = 0.0
    share = kept.cumsum(dim=-1)
    target = uniforms.to(logits.device)[:, None] * share[:, -1:]
    chosen = (share <= target).sum(dim=-1, keepdim=True)
    last = (kept > 0).sum(dim=-1, keepdim=True) - 1
    return tokens.gather(-1, torch.minimum(chosen, last))[:, 0]


def uniforms(seeds: Sequence[int], generation: Generation) -> Tensor:
    """Shape (rows, max_new_tokens), drawn on the CPU so that a GPU's generator does not change a reply."""
    import torch

    rows = [
        torch.rand(generation.max_new_tokens, dtype=torch.float64, generator=torch.Generator().manual_seed(s))
        for s in seeds
    ]
    return torch.stack(rows)


def _left_padded(prompts: Sequence[Sequence[int]], device: Any) -> tuple[Tensor, Tensor]:
    """Token ids and attention mask, both of shape (rows, longest prompt); what the padding's id is does not matter."""
    import torch

    longest = max(map(len, prompts))
    tokens = torch.tensor([[0] * (longest - len(p)) + list(p) for p in prompts], device=device)
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device=device)
    return tokens, mask
