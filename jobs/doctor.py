"""Looks at what a sweep needs on this machine: one line a thing: ok, a problem, or the command that mends it.

Invariant: changes nothing, loads no model, and never fails itself: what cannot be looked at is a line. Exit status: 0
nothing that a sweep needs is missing, 1 something is.

    python jobs/doctor.py [store=PATH]
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.text import Text

from jobs import config

FREE_GB = 10.0
CLOCK_S = 5.0
LONGEST_TEMP = 60
"""Characters of the temporary folder's path: Ray's sockets have short names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: Literal["ok", "optional", "problem"]
    """`optional`: missing, and only some options need it."""
    detail: str
    mend: str = ""
    """The command that mends it."""


def findings(store: str) -> Iterator[Finding]:
    """Everything, in the order in which a sweep meets it."""
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        python,
        torch_build,
        gpus,
        decoders,
        weights,
        environments,
        mlflow,
        ray_auth,
        lambda: disk(store),
        temporary_folder,
        clock,
    )
    for check in checks:
        yield from check()


def python() -> Iterator[Finding]:
    """Its version, and whether the lock file's packages are what is installed."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding(what="python", state="ok", detail=version)
    if odd := list(_unlike_the_lock()):
        yield Finding(
            what="packages", state="problem", detail=f"{len(odd)} differ from constraints.txt: {', '.join(odd[:4])}",
            mend="make install",
        )  # fmt: skip
    else:
        yield Finding(what="packages", state="ok", detail="as constraints.txt locks them")


def _unlike_the_lock() -> Iterator[str]:
    from importlib.metadata import PackageNotFoundError, version

    for line in (config.ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        name, same, wanted = line.partition("==")
        if not same or line.startswith("#"):
            continue
        try:
            there = version(name.strip())
        except PackageNotFoundError:
            continue
        if there.split("+")[0] != wanted.strip():
            yield f"{name} {there} (locked {wanted.strip()})"


def torch_build() -> Iterator[Finding]:
    """Whether torch imports, and for what it was built."""
    code = "import torch; print(torch.__version__, torch.version.cuda or 'cpu', torch.cuda.is_available())"
    done = _ran([sys.executable, "-c", code], timeout_s=120)
    if done is None or done.returncode:
        said = done.stderr.strip().splitlines()[-1] if done and done.stderr.strip() else "it did not answer"
        yield Finding(what="torch", state="problem", detail=said, mend="pip install torch==2.13.0")
        return
    version, built, usable = done.stdout.split()
    if built != "cpu" and usable == "False":
        yield Finding(what="torch", state="problem", detail=f"{version} is built for CUDA {built}: no answer",
                      mend="nvidia-smi")  # fmt: skip
    else:
        yield Finding(
            what="torch", state="ok", detail=f"{version}, {'CPU' if built == 'cpu' else f'CUDA {built}'}"
        )


def gpus() -> Iterator[Finding]:
    """What nvidia-smi lists."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    done = _ran(query, timeout_s=30) if shutil.which("nvidia-smi") else None
    if done is None:
        yield Finding(
            what="gpu", state="optional", detail="none: only the cascade and tiny models are practical"
        )
    elif done.returncode:
        yield Finding(
            what="gpu",
            state="problem",
            detail=(done.stdout + done.stderr).strip().splitlines()[-1],
            mend="nvidia-smi",
        )
    else:
        for line in done.stdout.strip().splitlines():
            yield Finding(what="gpu", state="ok", detail=line)


def decoders() -> Iterator[Finding]:
    """Libsndfile and FFmpeg's libraries, both inside wheels."""
    for package, what in (
        ("soundfile", "WAV, FLAC, MP3, Ogg"),
        ("av", "M4A, AAC, WebM (FFmpeg's libraries)"),
    ):
        if importlib.util.find_spec(package):
            yield Finding(what=f"audio: {package}", state="ok", detail=what)
        else:
            yield Finding(
                what=f"audio: {package}", state="problem", detail=f"missing: {what}", mend="make install"
            )


WEIGHTS = (
    ("whisper-tiny.en-ct2", "the demo's recogniser, MIT", "python scripts/fetch_demo_weights.py", True),
    (
        "smollm2-135m-instruct",
        "the demo's language model, Apache-2.0",
        "python scripts/fetch_demo_weights.py",
        True,
    ),
    ("piper-joe", "the demo's voice, CC0 and MIT", "python scripts/fetch_demo_weights.py", True),
    ("nisqa.tar", "NISQA, CC BY-NC-SA 4.0", "python scripts/fetch_weights.py nisqa", False),
    ("utmos_state_dict.pt", "UTMOS22", "python scripts/fetch_weights.py utmos", False),
    ("kokoro", "Kokoro voices, Apache-2.0", "python scripts/fetch_demo_weights.py --only kokoro", False),
    ("tiny", "tiny checkpoints, our own", "python scripts/tiny_checkpoint.py all weights/tiny", False),
)
"""Name below weights/, what it is with its licence, the command that brings it, whether the default sweep needs it."""


def weights() -> Iterator[Finding]:
    """What lies in weights/."""
    folder = config.ROOT / "weights"
    for name, what, command, needed in WEIGHTS:
        elsewhere = os.environ.get("NISQA_WEIGHTS") if name == "nisqa.tar" else None
        if (folder / name).exists() or (elsewhere and Path(elsewhere).exists()):
            yield Finding(what=f"weights: {name}", state="ok", detail=what)
        else:
            yield Finding(
                what=f"weights: {name}", state="problem" if needed else "optional", detail=what, mend=command
            )


def environments() -> Iterator[Finding]:
    """Environments of models that bring their own."""
    if (config.ROOT / ".envs" / "vllm" / "bin" / "python").exists():
        yield Finding(what="environment: vllm", state="ok", detail=".envs/vllm")
    else:
        yield Finding(what="environment: vllm", state="optional", detail="for models ending in _vllm",
                      mend="python scripts/make_env.py vllm")  # fmt: skip


def mlflow() -> Iterator[Finding]:
    """The server that MLFLOW_TRACKING_URI names, if any."""
    uri = os.environ.get("MLFLOW_TRACKING_URI", "")
    if not uri.startswith("http"):
        yield Finding(
            what="mlflow",
            state="ok",
            detail=_without_password(uri) or "a SQLite file here (tracking=default)",
        )
        return
    try:
        with urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=5):
            yield Finding(what="mlflow", state="ok", detail=_without_password(uri))
    except (urllib.error.URLError, OSError, ValueError) as error:
        yield Finding(what="mlflow", state="problem", detail=f"{_without_password(uri)}: {error}",
                      mend="start the server; a sweep spools until it answers")  # fmt: skip


def _without_password(uri: str) -> str:
    head, at, tail = uri.rpartition("@")
    return f"{head.split('://')[0]}://...@{tail}" if at else uri


def ray_auth() -> Iterator[Finding]:
    """How a running cluster would be joined; one of our own always has a token of its own."""
    mode = os.environ.get("RAY_AUTH_MODE", "")
    token = os.environ.get("RAY_AUTH_TOKEN") or (Path.home() / ".ray" / "auth_token").exists()
    if mode == "disabled":
        yield Finding(what="ray auth", state="optional", detail="disabled: whoever reaches the ports can run code",
                      mend="unset RAY_AUTH_MODE; ray get-auth-token --generate")  # fmt: skip
    elif token:
        yield Finding(what="ray auth", state="ok", detail="a token is there for cluster=existing")
    else:
        yield Finding(what="ray auth", state="optional", detail="no token: only for cluster=existing",
                      mend="ray get-auth-token --generate")  # fmt: skip


def disk(store: str) -> Iterator[Finding]:
    """Free space where results go."""
    if "://" in store:
        yield Finding(what="disk", state="ok", detail=f"{store}: an object store")
        return
    place = next(
        p
        for p in (Path(store).expanduser().resolve(), *Path(store).expanduser().resolve().parents)
        if p.exists()
    )
    free_gb = shutil.disk_usage(place).free / 1e9
    state: Literal["ok", "problem"] = "ok" if free_gb >= FREE_GB else "problem"
    writable = os.access(place, os.W_OK)
    if not writable:
        state = "problem"
    detail = f"{free_gb:.0f} GB free at {place}" + ("" if writable else ", not writable")
    yield Finding(
        what="disk", state=state, detail=detail, mend="" if state == "ok" else "store=PATH with room"
    )


def temporary_folder() -> Iterator[Finding]:
    """Ray's sockets lie below it."""
    import tempfile

    folder = tempfile.gettempdir()
    if len(folder) > LONGEST_TEMP:
        yield Finding(what="temporary folder", state="problem", detail=f"{folder} is too long for Ray's sockets",
                      mend="export TMPDIR=/tmp")  # fmt: skip
    else:
        yield Finding(what="temporary folder", state="ok", detail=folder)


def clock() -> Iterator[Finding]:
    """This machine's clock against the tracking server's, where there is one: runs are sorted by time."""
    uri = os.environ.get("MLFLOW_TRACKING_URI", "")
    if not uri.startswith("http"):
        yield Finding(what="clock", state="ok", detail=time.strftime("%Y-%m-%d %H:%M:%S %z"))
        return
    try:
        with urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=5) as answer:
            theirs = parsedate_to_datetime(answer.headers["Date"]).timestamp()
    except (urllib.error.URLError, OSError, ValueError, TypeError):
        return
    apart_s = abs(time.time() - theirs)
    if apart_s > CLOCK_S:
        yield Finding(what="clock", state="problem", detail=f"{apart_s:.0f} s apart from the tracking server",
                      mend="timedatectl set-ntp true")  # fmt: skip
    else:
        yield Finding(what="clock", state="ok", detail="agrees with the tracking server")


def _ran(command: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None


def main(arguments: Sequence[str]) -> int:
    """Prints every finding; returns the exit status."""
    if "--help" in arguments or "-h" in arguments:
        print(__doc__)
        return 0
    given = dict(a.partition("=")[::2] for a in arguments)
    if unknown := sorted(given.keys() - {"store"}):
        print(f"error: {', '.join(unknown)}: settings are store=...", file=sys.stderr)
        return 2
    console = Console()
    colours = {"ok": "green", "optional": "yellow", "problem": "red"}
    problems = 0
    for finding in findings(given.get("store", str(config.ROOT / "store"))):
        problems += finding.state == "problem"
        line = Text(f"{finding.state:9}", style=colours[finding.state]).append(
            f"{finding.what}: {finding.detail}", "default"
        )
        console.print(line.append(f"  -> {finding.mend}", "bold") if finding.mend else line, soft_wrap=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
