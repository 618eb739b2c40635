import pytest
import torch

from models.decoding import Generation, decode, next_tokens
from tests.checkpoints import spread

SAMPLED = Generation(max_new_tokens=16, do_sample=True, temperature=0.8, top_p=0.95)
PROMPTS = [[5, 6, 7], [9], [4, 4, 4, 8, 9, 10, 11, 12, 30, 31], [40, 41], [3, 50, 60, 20]]
SEEDS = [11, 12, 13, 14, 15]
NEVER: frozenset[int] = frozenset()


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=70, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4
    )
    return spread(LlamaForCausalLM(config))


@pytest.fixture(scope="module")
def with_absolute_positions() -> torch.nn.Module:
    """Llama's rotary positions are relative: an offset by the padding would not show in it."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=70, n_embd=64, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2)
    return spread(GPT2LMHeadModel(config))


def uniforms(count: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(count, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("generation", [Generation(max_new_tokens=16), SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("which", ["model", "with_absolute_positions"])
def test_a_rows_tokens_do_not_depend_on_its_neighbours(
    which: str, generation: Generation, request: pytest.FixtureRequest
) -> None:
    model = request.getfixturevalue(which)
    together = decode(model, PROMPTS, SEEDS, NEVER, generation).tokens
    alone = [
        decode(model, [p], [s], NEVER, generation).tokens[0] for p, s in zip(PROMPTS, SEEDS, strict=True)
    ]
    order = [3, 0, 4, 2, 1]
    shuffled = decode(model, [PROMPTS[i] for i in order], [SEEDS[i] for i in order], NEVER, generation).tokens
    assert together == alone
    assert shuffled == [together[i] for i in order]
    assert len({tuple(tokens) for tokens in together}) == len(PROMPTS)


def test_greedy_decoding_is_what_transformers_generates(model: torch.nn.Module) -> None:
    for prompt in PROMPTS:
        ids = torch.tensor([prompt])
        expected = model.generate(  # type: ignore[operator]
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, do_sample=False, eos_token_id=None
        )
        found = decode(model, [prompt], [0], NEVER, Generation(max_new_tokens=16)).tokens[0]
        assert found == expected[0, len(prompt) :].tolist()


def test_another_seed_is_another_reply_and_the_same_seed_the_same(model: torch.nn.Module) -> None:
    same = decode(model, [PROMPTS[0]] * 3, [1, 1, 2], NEVER, SAMPLED).tokens
    assert same[0] == same[1] != same[2]


def test_a_stop_token_ends_its_row_only_and_is_not_counted(model: torch.nn.Module) -> None:
    free = decode(model, PROMPTS, SEEDS, NEVER, SAMPLED)
    assert all(free.truncated)
    stop = free.tokens[0][5]
    stopped = decode(model, PROMPTS, SEEDS, frozenset({stop}), SAMPLED)
    for before, after, truncated in zip(free.tokens, stopped.tokens, stopped.truncated, strict=True):
        cut = before.index(stop) if stop in before else len(before)
        assert after == before[:cut]
        assert truncated == (stop not in before)


def test_sampled_tokens_follow_the_distribution() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, 3.0])
    generation = Generation(max_new_tokens=1, do_sample=True, temperature=2.0)
    drawn = next_tokens(logits.repeat(20_000, 1), uniforms(20_000), generation)
    shares = torch.bincount(drawn, minlength=4) / len(drawn)
    assert torch.allclose(shares, torch.softmax(logits / 2.0, dim=0), atol=0.015)


def test_top_p_keeps_the_smallest_set_that_reaches_it() -> None:
    logits = torch.tensor([0.1, 0.5, 0.3, 0.1]).log()
    for top_p, kept in [(0.5, {1}), (0.6, {1, 2}), (0.95, {0, 1, 2, 3})]:
        generation = Generation(max_new_tokens=1, do_sample=True, top_p=top_p)
        drawn = next_tokens(logits.repeat(2_000, 1), uniforms(2_000), generation)
        assert set(drawn.tolist()) == kept, top_p


def test_the_ends_of_the_uniform_range_are_tokens_of_the_kept_set() -> None:
    generation = Generation(max_new_tokens=1, do_sample=True, top_p=0.7)
    logits = torch.tensor([[0.1, 0.5, 0.3, 0.1]] * 2).log()
    edges = torch.tensor([0.0, 1.0 - 2**-53], dtype=torch.float64)
    assert next_tokens(logits, edges, generation).tolist() == [1, 2]


def test_settings_that_do_not_exist_or_make_no_sense_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"no setting beams; it has max_new_tokens, do_sample, temperature, top_p"
    ):
        Generation.parse({"max_new_tokens": 8, "beams": 5})
    for wrong in ({"max_new_tokens": 0}, {"temperature": 0.0}, {"top_p": 0.0}, {"top_p": 1.5}):
        with pytest.raises(ValueError, match="temperature > 0"):
            Generation.parse({"max_new_tokens": 8, **wrong})


def test_top_k_leaves_so_many_of_the_likeliest_tokens() -> None:
    logits = torch.log(torch.tensor([[0.1, 0.4, 0.3, 0.2]])).expand(1000, -1)
    drawn = Generation(max_new_tokens=1, do_sample=True, top_k=2)
    assert set(next_tokens(logits, uniforms(1000), drawn).tolist()) == {1, 2}
    with pytest.raises(ValueError, match="top_k >= 1"):
        Generation.parse({"max_new_tokens": 8, "top_k": 0})


def test_a_row_sampler_leaves_generate_the_token_that_decode_would_draw(model: torch.nn.Module) -> None:
    """Two ways to the same tokens: our loop, and `generate` with a processor a row."""
    from models.decoding import RowSampler, cut

    expected = decode(model, PROMPTS, SEEDS, frozenset({3}), SAMPLED)
    for prompt, seed, tokens, truncated in zip(
        PROMPTS, SEEDS, expected.tokens, expected.truncated, strict=True
    ):
        ids = torch.tensor([prompt])
        made = model.generate(  # type: ignore[operator]
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=16,
            do_sample=False,
            eos_token_id=3,
            pad_token_id=3,
            logits_processor=[RowSampler([seed], SAMPLED)],
        )
        assert cut(made[0, len(prompt) :].tolist(), frozenset({3})) == (tokens, truncated)
