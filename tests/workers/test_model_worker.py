"""What a worker makes of a request before its model sees it."""

import numpy as np
import pytest

from farm.store import Store
from farm.types import (
    AudioSegment,
    Capabilities,
    Condition,
    ModelSpec,
    Request,
    TextSegment,
    Trial,
    Turn,
    Waveform,
)
from workers.model_worker import ModelBody, with_system_prompt

QUESTION = TextSegment(role="question", text="Who?")
ASKED = Request(system="Be kind.", turns=((QUESTION,), (QUESTION,)))


def body(store: Store, **capabilities: object) -> ModelBody:
    able = Capabilities(**{"text_out": True, "speech_out": False, **capabilities})  # type: ignore[arg-type]
    spec = ModelSpec(name="m", adapter={}, checkpoint="c", versions={}, identity={}, capabilities=able)
    return ModelBody(spec, store)


def trial(*turns: Turn) -> Trial:
    return Trial(
        trial_id="t",
        cell_id="c",
        item_key="i",
        request=Request(system="", turns=turns),
        condition=Condition(name="clean", chain=()),
        condition_seed=0,
        repeat=0,
    )


def test_a_native_system_prompt_stays_a_turn_of_its_own() -> None:
    assert with_system_prompt(ASKED, "native") == ASKED


def test_a_merged_system_prompt_stands_before_the_first_users_words() -> None:
    merged = with_system_prompt(ASKED, "merged")
    assert merged.system is None
    assert merged.turns == ((TextSegment(role="instruction", text="Be kind.\n"), QUESTION), (QUESTION,))


@pytest.mark.parametrize("takes", ["merged", "none"])
def test_an_empty_system_prompt_leaves_no_trace_where_there_is_no_turn_for_it(takes: str) -> None:
    empty = Request(system="", turns=((QUESTION,),))
    assert with_system_prompt(empty, takes) == Request(system=None, turns=((QUESTION,),))


def test_a_model_that_reads_no_text_gets_no_system_prompt() -> None:
    assert with_system_prompt(ASKED, "none").system is None
    assert with_system_prompt(ASKED, "none").turns == ASKED.turns


def test_more_turns_and_longer_audio_than_a_model_takes_are_errors_of_the_input(tmp_path: object) -> None:
    store = Store.open(f"{tmp_path}/store")
    with pytest.raises(ValueError, match="2 turns; m takes one"):
        body(store).prepare(trial((QUESTION,), (QUESTION,)))
    body(store, multi_turn=True).prepare(trial((QUESTION,), (QUESTION,)))
    generator = np.random.default_rng(0)
    samples = generator.normal(scale=0.1, size=32_000).astype(np.float32)
    noise = Waveform(samples=samples, sample_rate_hz=16_000)
    clip = AudioSegment(role="question", path=_written(noise, tmp_path), sha256="", seconds=2.0)
    body(store, max_audio_s=2.0).prepare(trial((clip,)))
    with pytest.raises(ValueError, match=r"2\.00 s of audio; m takes 1\.5 s at most"):
        body(store, max_audio_s=1.5).prepare(trial((clip,)))


def _written(waveform: Waveform, folder: object) -> str:
    import soundfile

    path = f"{folder}/clip.wav"
    soundfile.write(path, waveform.samples, waveform.sample_rate_hz)
    return path
