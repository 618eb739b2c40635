"""Environments beside the main one: what decides their content, and one that is really made, of nothing but Python."""

import dataclasses
import json
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jobs.config import ROOT


@pytest.fixture
def make_env(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script, its environments below a folder of the test's."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import make_env

    monkeypatch.setattr(make_env, "ENVS", tmp_path / ".envs")
    return make_env


@pytest.fixture
def plain(make_env: ModuleType) -> Any:
    """An environment of which nothing is fetched."""
    return make_env.Environment(packages=(), on_a_gpu={}, not_locked=(), imports=("json", "farm"))


@pytest.mark.parametrize("change", ["packages", "first", "constraints.txt", "hook", "GPU", "root"])
def test_whatever_decides_the_content_is_in_the_recipe(
    make_env: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str
) -> None:
    environment = make_env.Environment(
        first=("torch==1",), packages=("a==1",), on_a_gpu={"a==1": "b==1"}, not_locked=(), imports=()
    )
    before = make_env.recipe(environment)
    assert make_env.recipe(environment) == before
    (tmp_path / "other").write_text("numpy==1\n")
    if change in ("packages", "first"):
        environment = dataclasses.replace(environment, **{change: ("c==1",)})
    if change == "GPU":
        monkeypatch.setattr(make_env, "_has_gpu", lambda: True)
    names = {"constraints.txt": "CONSTRAINTS", "hook": "HOOK", "root": "ROOT"}
    if change in names:
        monkeypatch.setattr(make_env, names[change], tmp_path / "other")
    assert make_env.recipe(environment) != before


def test_the_locked_versions_hold_but_for_those_that_cannot(make_env: ModuleType) -> None:
    vllm = make_env.ENVIRONMENTS["vllm"]
    locked = (ROOT / "constraints.txt").read_text().splitlines()
    held = make_env.constraints(vllm).splitlines()
    dropped = [line.split("==")[0].lower() for line in locked if line not in held]
    assert sorted(dropped) == sorted(vllm.not_locked), (
        "a name that constraints.txt has not needs no exception"
    )
    assert "transformers==5.19.0" in held and "ray==2.60.0" in held


def test_only_an_environment_made_to_its_end_by_this_recipe_is_finished(
    make_env: ModuleType, plain: Any, tmp_path: Path
) -> None:
    assert not make_env.finished(tmp_path, plain)
    (tmp_path / make_env.NOTE).write_text("of an older recipe")
    assert not make_env.finished(tmp_path, plain)
    (tmp_path / make_env.NOTE).write_text(make_env.recipe(plain))
    assert make_env.finished(tmp_path, plain)


def test_an_environment_is_made_once_and_finds_the_repository_from_anywhere(
    make_env: ModuleType,
    plain: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(make_env, "ENVIRONMENTS", {"plain": plain})
    monkeypatch.setattr(make_env, "_pip", lambda *_: pytest.fail("nothing is to be installed"))
    assert make_env.main(["plain"]) == 0
    assert "plain: done" in capsys.readouterr().out
    folder = tmp_path / ".envs" / "plain"
    code = "import farm, sys; print(farm.__file__, sys.prefix)"
    said = subprocess.check_output([folder / "bin" / "python", "-c", code], text=True, cwd="/").split()
    assert said == [str(ROOT / "farm" / "__init__.py"), str(folder)]
    assert json.loads((folder / make_env.NOTE).read_text())["root"] == str(ROOT)
    (folder / "kept").touch()
    assert make_env.main(["plain"]) == 0
    assert "already there" in capsys.readouterr().out and (folder / "kept").exists()


def test_one_whose_proof_fails_is_not_finished_and_says_why(
    make_env: ModuleType,
    plain: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    broken = dataclasses.replace(plain, imports=("no_such_module",))
    monkeypatch.setattr(make_env, "ENVIRONMENTS", {"broken": broken})
    assert make_env.main(["broken"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "No module named 'no_such_module'" in error
    assert not make_env.finished(tmp_path / ".envs" / "broken", broken)


def test_a_package_that_cannot_be_installed_is_one_line(
    make_env: ModuleType,
    plain: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    missing = dataclasses.replace(plain, packages=(str(tmp_path / "no-such-folder.whl"),))
    monkeypatch.setattr(make_env, "ENVIRONMENTS", {"missing": missing})
    assert make_env.main(["missing"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("make_env: pip could not install") and error.count("\n") == 1


def test_an_unknown_name_is_refused_with_those_that_there_are(
    make_env: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        make_env.main(["nope"])
    assert ended.value.code == 2 and "vllm" in capsys.readouterr().err
