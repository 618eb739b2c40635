"""The house: imports run downwards only, the driver stays light, every `_target_` is a class with a version."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hydra.utils import get_class

ROOT = Path(__file__).parents[1]

MAY_IMPORT = {
    "farm": set(),
    "audio": {"farm"},
    "speech": {"farm", "audio"},
    "models": {"farm", "audio", "speech"},
    "scoring": {"farm", "audio", "speech"},
    "benchmarks": {"farm", "audio", "speech"},
    "tracking": {"farm", "audio", "speech"},
    "workers": {"farm", "audio", "speech", "models", "scoring", "benchmarks", "tracking"},
    "jobs": {"farm", "audio", "speech", "models", "scoring", "benchmarks", "tracking", "workers"},
}
"""Folder -> the folders below it. models, scoring, benchmarks and tracking never import each other."""

FORBIDDEN_IN_FARM = {"torch", "ray", "mlflow", "transformers", "hydra", "omegaconf"}
HEAVY = ("torch", "transformers", "mlflow", "librosa", "audiomentations", "onnxruntime")


def imported(path: Path) -> set[str]:
    """First names of everything that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def targets() -> list[tuple[str, str]]:
    """Every `_target_` in conf/, with the file that names it."""

    def walk(node: object) -> list[str]:
        if isinstance(node, dict):
            found = [node["_target_"]] if "_target_" in node else []
            return found + [t for value in node.values() for t in walk(value)]
        return [t for value in node for t in walk(value)] if isinstance(node, list) else []

    files = sorted((ROOT / "conf").rglob("*.yaml"))
    return [(str(f.relative_to(ROOT)), t) for f in files for t in walk(yaml.safe_load(f.read_text()))]


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_run_downwards_only(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        above = (imported(path) & set(MAY_IMPORT)) - MAY_IMPORT[folder] - {folder}
        assert not above, f"{path.relative_to(ROOT)} imports {above}"


def test_the_ground_knows_nothing_of_ray_torch_or_mlflow() -> None:
    for path in (ROOT / "farm").rglob("*.py"):
        assert not imported(path) & FORBIDDEN_IN_FARM, path


@pytest.mark.parametrize(("file", "target"), targets())
def test_every_target_resolves_to_a_class(file: str, target: str) -> None:
    assert isinstance(get_class(target), type), file


def test_planning_a_sweep_imports_nothing_heavy() -> None:
    """What `--help` and `dry_run=true` import: the job, and every class that conf/ names."""
    classes = sorted({target for _, target in targets()})
    code = (
        "import sys; sys.path.insert(0, 'jobs'); import sweep; from hydra.utils import get_class\n"
        f"[get_class(name) for name in {classes!r}]\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"
