"""Every option of conf/ composes into frozen dataclasses, and what a user gets wrong is said all at once."""

import sys
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from jobs import config

CONF = config.ROOT / "conf"
SELECT_MANY = ("model", "prompt", "condition", "scorer", "judge")
GROUPS = sorted(folder.name for folder in CONF.iterdir() if folder.is_dir())

config.register_resolvers()


def composed(*overrides: str, job: str = "sweep") -> DictConfig:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose(job, overrides=list(overrides))


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


@pytest.fixture
def demo_weights() -> None:
    if not (config.ROOT / "weights" / "piper-joe").exists():
        pytest.skip("no demo weights; python scripts/fetch_demo_weights.py")


@pytest.mark.parametrize(("group", "option"), [(g, o) for g in GROUPS for o in options(g)])
def test_every_option_composes(group: str, option: str) -> None:
    choice = f"{group}=[{option}]" if group in SELECT_MANY else f"{group}={option}"
    assert config.plain(composed(choice, job="retest" if group == "retest" else "sweep"))


@pytest.mark.parametrize("group", SELECT_MANY)
def test_an_option_is_packaged_under_its_own_name(group: str) -> None:
    for option in options(group):
        if option != "all":
            assert list(composed(f"{group}=[{option}]")[f"{group}s"]) == [option]


def test_condition_all_names_every_condition() -> None:
    assert sorted(composed("condition=all").conditions) == [o for o in options("condition") if o != "all"]


@pytest.mark.usefixtures("demo_weights")
def test_the_default_sweep_is_six_cells_of_the_cascade() -> None:
    sweep = config.sweep(composed())
    assert [m.name for m in sweep.models] == ["cascade_cpu"]
    assert [t.name for t in sweep.tasks] == ["echomind.conversation"]
    assert len(sweep.prompts) * len(sweep.conditions) == 6
    assert sweep.repeats == 2
    assert {s.name for s in sweep.scorers} == {"nisqa", "utmos", "dnsmos", "distillmos"}


@pytest.mark.usefixtures("demo_weights")
def test_all_conditions_and_prompts_become_dataclasses() -> None:
    sweep = config.sweep(composed("condition=all", "prompt=[p1,p2,p3]"))
    assert [p.strength for p in sweep.prompts] == ["zero", "basic", "enhanced"]
    assert all(c.versions or not c.chain for c in sweep.conditions)


@pytest.mark.usefixtures("demo_weights")
def test_worker_settings_change_no_identity_and_generation_settings_do() -> None:
    def identity(*overrides: str) -> object:
        model = config.sweep(composed(*overrides)).models[0]
        return model.identity, model.checkpoint, model.versions

    generation = "models.cascade_cpu.adapter.language_model.generation.temperature=0.9"
    assert identity("models.cascade_cpu.workers.max_batch=2") == identity()
    assert identity(generation) != identity()


def test_a_checkpoint_is_known_by_its_bytes_not_by_its_place(tmp_path: Path) -> None:
    def model(folder: str, content: bytes) -> str:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.bin").write_bytes(content)
        part = {"checkpoint": {"path": str(tmp_path / folder)}}
        adapter = {
            "_target_": "models.cascade.Cascade",
            "recogniser": part,
            "language_model": {},
            "synthesiser": None,
        }
        option = {"adapter": adapter, "capabilities": {"text_out": True, "speech_out": False}}
        return config.model_spec("m", option).checkpoint

    assert model("here", b"weights") == model("there", b"weights")
    assert model("other", b"weightz") != model("another", b"weights")


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    wrong = composed(
        "repeats=0",
        "limit=-1",
        "rerun=some",
        "failure_budget=5",
        "task=[nope]",
        f"weights={tmp_path}",
        "+models.cascade_cpu.workers.gpus=1",
    )
    with pytest.raises(ValueError) as refused:
        config.sweep(wrong)
    message = str(refused.value)
    for part in (
        "repeats=0",
        "limit=-1",
        "rerun='some'",
        "failed, all",
        "failure_budget=5",
        "echomind.conversation",
    ):
        assert part in message
    assert "no field gpus" in message
    for part in ("whisper-tiny.en-ct2", "smollm2-135m-instruct", "piper-joe", "fetch_demo_weights.py"):
        assert part in message


def test_an_unknown_field_names_the_known_ones() -> None:
    option = {
        "adapter": {"_target_": "models.cascade.Cascade"},
        "capabilities": {"text_out": True, "speech": True},
    }
    with pytest.raises(ValueError, match="no field speech; it has text_out, speech_out"):
        config.model_spec("m", option)


def test_a_hub_checkpoint_without_a_revision_is_refused() -> None:
    adapter = {"_target_": "models.cascade.Cascade", "checkpoint": {"repo": "org/name", "revision": None}}
    option = {"adapter": adapter, "capabilities": {"text_out": True, "speech_out": False}}
    with pytest.raises(ValueError, match="org/name has no revision"):
        config.model_spec("m", option)


def test_a_misspelt_target_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"audio\.conditions\.WhiteNoize"):
        config.condition("c", {"chain": [{"_target_": "audio.conditions.WhiteNoize"}]})


JUDGES = ("scorer=[judge_text,judge_ves]", "judge=[served,gemini_2_5_pro]")
SERVED = ("judges.served.checkpoint.served_model=m", "judges.served.checkpoint.label=l")


@pytest.mark.usefixtures("demo_weights")
def test_every_judge_scores_what_it_can_the_first_under_the_plain_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    scorers = {s.name: s for s in config.sweep(composed(*JUDGES, *SERVED)).scorers}
    assert list(scorers) == ["judge_text.served", "judge_text.gemini_2_5_pro", "judge_ves.gemini_2_5_pro"]
    assert scorers["judge_text.served"].metrics[0].name == "judge/c4"
    assert scorers["judge_text.gemini_2_5_pro"].metrics[0].name == "judge/c4.gemini_2_5_pro"
    assert scorers["judge_ves.gemini_2_5_pro"].metrics[0].name == "judge/ves"
    assert scorers["judge_text.served"].tasks == ("echomind.conversation",)


@pytest.mark.usefixtures("demo_weights")
def test_a_judges_address_changes_no_score_and_its_name_and_label_do() -> None:
    def identity(*overrides: str) -> tuple[str, str]:
        (spec,) = config.sweep(composed("scorer=[judge_text]", "judge=[served]", *SERVED, *overrides)).scorers
        return spec.version, spec.weights

    assert identity("judges.served.server.base_url=http://x:1/v1", "judges.served.max_calls=3") == identity()
    assert identity("judges.served.checkpoint.label=other") != identity()


@pytest.mark.usefixtures("demo_weights")
def test_a_judging_scorer_without_a_judge_is_refused_with_the_judges_there_are() -> None:
    with pytest.raises(
        ValueError, match=r"judge_text: needs a judge: 'judge=\[\.\.\.\]' of gemini_2_5_pro, gpt_4o"
    ):
        config.sweep(composed("scorer=[judge_text]"))
    with pytest.raises(ValueError, match="needs a judge that hears"):
        config.sweep(composed("scorer=[judge_ves]", "judge=[served]", *SERVED))
    with pytest.raises(ValueError, match="served_model, and a label"):
        config.sweep(composed("scorer=[judge_text]", "judge=[served]"))


@pytest.fixture
def vllm_option(tmp_path: Path) -> dict[str, Any]:
    """The tiny Qwen2-Audio under vLLM, with a checkpoint and an interpreter that are there."""
    option: dict[str, Any] = config.plain(composed("model=[tiny_qwen2_audio_vllm]"))["models"][
        "tiny_qwen2_audio_vllm"
    ]
    (tmp_path / "weights").write_bytes(b"weights")
    option["adapter"]["checkpoint"] = {"path": str(tmp_path)}
    option["workers"]["py_executable"] = sys.executable
    return option


def test_an_interpreter_that_is_not_there_is_refused_with_the_command_that_makes_it(
    vllm_option: dict[str, Any], tmp_path: Path
) -> None:
    assert config.model_spec("m", vllm_option).workers.py_executable == sys.executable
    made = tmp_path / ".envs" / "vllm" / "bin" / "python"
    vllm_option["workers"]["py_executable"] = str(made)
    with pytest.raises(ValueError, match=f"{made}: no such interpreter.*python scripts/make_env.py vllm"):
        config.model_spec("m", vllm_option)
    vllm_option["workers"]["py_executable"] = "/nowhere/python"
    with pytest.raises(ValueError, match="/nowhere/python: no such interpreter$"):
        config.model_spec("m", vllm_option)


def test_what_an_engine_may_use_of_a_machine_is_in_no_id(vllm_option: dict[str, Any]) -> None:
    before = config.model_spec("m", vllm_option).identity
    vllm_option["adapter"]["resources"]["max_num_seqs"] = 3
    assert config.model_spec("m", vllm_option).identity == before
    vllm_option["adapter"]["max_model_len"] = 1000
    assert config.model_spec("m", vllm_option).identity != before


TINY = "models.tiny_qwen2_audio"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (f"{TINY}.adapter.generation.max_new_tokens=abc", "max_new_tokens='abc': wanted is int"),
        (f"{TINY}.adapter.generation.max_new_tokens=2.5", "max_new_tokens=2.5: wanted is int"),
        (f"{TINY}.adapter.generation.do_sample=maybe", "do_sample='maybe'"),
        (f"{TINY}.adapter.generation.temperature=null", "temperature=None"),
        (f"{TINY}.adapter.generation=null", "settings are wanted, not None"),
        (f"{TINY}.adapter.prompt_format=null", "settings are wanted, not None"),
        (f"+{TINY}.adapter.prompt_format.sample_rate_hz=-1", "at least 1"),
        (f"{TINY}.adapter.prompt_format.processor_options=3", "processor_options=3"),
        (f"{TINY}.adapter.checkpoint=foo", "checkpoint='foo'"),
        (f"{TINY}.adapter.checkpoint=null", "checkpoint=None"),
        (f"~{TINY}.adapter.checkpoint.path", "{path: ...}, or {repo"),
        (f"~{TINY}.adapter._target_", "adapter needs _target_"),
        (f"~{TINY}.capabilities", "fields are wanted, not None"),
        (f"{TINY}.adapter.dtype=float99", "one of float32, bfloat16, float16"),
        (f"{TINY}.adapter.attention=flashy", "one of sdpa, eager, flash_attention_2"),
    ],
)
def test_a_wrong_value_of_a_model_is_said_with_what_would_do(override: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        config.sweep(composed("model=[tiny_qwen2_audio]", "scorer=[]", override))
    assert said in str(refused.value)
