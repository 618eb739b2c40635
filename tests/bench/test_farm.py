"""Each figure of `make bench` can be measured, here at a scale at which its value says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import engine_cost, farm, gpu_check, model_speed, planning, tracking_cost
from bench.figures import Figure, memory_mb
from farm.store import Store
from workers.cluster import connect

SMALL: dict[str, Callable[[], list[Figure]]] = {
    "overhead": lambda: engine_cost.overhead(seconds=0.4, goals={2: 0.5}),
    "scaling": lambda: engine_cost.scaling(workers=2, seconds=0.4, model_s=0.02),
    "null": lambda: engine_cost.null_model(trials=1000),
    "plan": lambda: planning.plan(items=10),
    "resume": lambda: planning.resume(trials=1000),
    "cells": lambda: tracking_cost.cells_per_s(cells=2, trials=4),
    "waiting": lambda: tracking_cost.waiting_share(cells=2, trials=4),
    "reload": lambda: engine_cost.reload(load_s=0.1),
    "qwen2_5_omni": lambda: model_speed.qwen2_5_omni(requests=4),
    "qwen2_audio": lambda: model_speed.qwen2_audio(requests=4),
    "audio_flamingo3": lambda: model_speed.audio_flamingo3(requests=4),
}


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[None]:
    with connect(num_cpus=farm.RAY_CPUS):
        yield


@pytest.mark.parametrize("name", sorted(farm.FIGURES))
@pytest.mark.usefixtures("own_cluster")
def test_figure_is_measured(name: str) -> None:
    figures = SMALL[name]()
    assert figures and all(figure.value > 0 for figure in figures if "growth" not in figure.name)
    assert all(len(str(figure).split()) == 4 for figure in figures)


@pytest.mark.parametrize(
    ("better", "value", "line"),
    [
        ("higher", 0.9496, "x 0.9496 >=0.95 short"),
        ("higher", 0.95, "x 0.95 >=0.95 ok"),
        ("lower", 0.2, "x 0.2 <=0.95 ok"),
        ("lower", 0.950001, "x 0.95 <=0.95 short"),
    ],
)
def test_a_line_says_whether_the_goal_is_reached(better: str, value: float, line: str) -> None:
    assert str(Figure(name="x", value=value, goal=0.95, better=better)) == line  # type: ignore[arg-type]


def test_only_the_figures_asked_for_are_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = Figure(name="seen", value=1, goal=2, better="lower")
    monkeypatch.setattr(farm, "measure", lambda name: [figure] if name == "plan" else pytest.fail(name))
    assert farm.main(["plan"]) == 0
    assert capsys.readouterr().out == "seen 1 <=2 ok\n"


def test_an_unknown_figure_is_refused_with_the_valid_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        farm.main(["speed"])
    assert "overhead" in capsys.readouterr().err


def test_rate_counts_the_time_in_which_all_workers_worked() -> None:
    watch = engine_cost.Watch(2, 1.0)
    alone = [(t / 20, 8) for t in range(40)]  # 160 trials a second
    watch.batches = {
        "early": alone + [(2 + t / 10, 8) for t in range(30)],  # 80
        "late": [(2 + t / 5, 8) for t in range(10)],  # 40
    }
    assert watch.trials_per_s == pytest.approx(120)


def test_a_filled_store_is_read_as_a_sweeps_own(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "store"))
    planning.fill(store, 600)
    rows = store.replies(columns=["trial_id", "text", "attempt"])
    assert rows.num_rows == 600 and len(set(rows["trial_id"].to_pylist())) == 600


def test_memory_is_in_megabytes() -> None:
    assert 10 < memory_mb("VmRSS") <= memory_mb("VmHWM") < 100_000


@pytest.mark.usefixtures("own_cluster")
def test_both_ways_to_run_a_model_write_the_same_replies() -> None:
    same, _ = model_speed.qwen2_audio(requests=4)
    assert same.name == "qwen2_audio.same_replies" and same.value == 1


def test_the_gpu_check_runs_on_a_cpu_at_a_small_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_check.main(["--size", "tiny", "--device", "cpu", "--requests", "2"]) == 0
    printed = capsys.readouterr().out
    for shape in gpu_check.SHAPES:
        assert f"{shape.name}.batched.requests_per_s" in printed
        assert f"{shape.name}.batched_over_batch_1" in printed


@pytest.mark.parametrize("shape", gpu_check.SHAPES, ids=lambda shape: shape.name)
def test_the_gpu_checks_shapes_are_those_of_7b_models(shape: gpu_check.Shape, tmp_path: Path) -> None:
    from models.tiny import make

    make(shape.architecture, tmp_path / "checkpoint")
    gpu_check._enlarge(shape, tmp_path / "checkpoint")
    model, _ = gpu_check._load(shape, tmp_path / "checkpoint", "meta")
    assert 7e9 < sum(weight.numel() for weight in model.parameters()) < 9e9
    assert {str(weight.dtype) for weight in model.parameters()} == {"torch.bfloat16"}
