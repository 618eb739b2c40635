"""Digest and true length: bad content is a value, remembered across processes, only a missing file is an error."""

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import audio
from audio import Probe
from tests.audio.signals import tone, wav_bytes, write

ROOT = Path(__file__).parents[2]


def settle(*paths: Path) -> None:
    """Makes files old enough to be remembered."""
    past = time.time() - 60
    for path in paths:
        os.utime(path, (past, past))


def test_a_probe_is_the_digest_of_the_bytes_and_the_decoded_length(tmp_path: Path) -> None:
    data = wav_bytes(tone(440, 1.5, 24_000).samples, 0xFFFFFFFF, 0xFFFFFFFF)
    path = write(tmp_path / "a.wav", data)
    assert audio.probe(path, tmp_path / "cache") == Probe(hashlib.sha256(data).hexdigest(), 1.5, "")


def test_bad_content_is_a_probe_with_the_reason(tmp_path: Path) -> None:
    bad = [write(tmp_path / "text.wav", b"no audio" * 100), write(tmp_path / "empty.wav", b"")]
    good = write(tmp_path / "a.wav", wav_bytes(tone(440, 0.5, 24_000).samples))
    text, whole, empty = audio.probe_many([bad[0], good, bad[1]], tmp_path / "cache")
    assert (text.seconds, empty.seconds, whole.seconds) == (0.0, 0.0, 0.5)
    assert text.problem.startswith("cannot be decoded")
    assert (empty.problem, whole.problem) == ("empty file", "")
    assert empty.sha256 == hashlib.sha256(b"").hexdigest()


def test_all_missing_files_are_named_at_once(tmp_path: Path) -> None:
    here = write(tmp_path / "a.wav", wav_bytes(tone(440, 0.5, 24_000).samples))
    with pytest.raises(ValueError, match=r"no such file: .*x\.wav, .*y\.wav"):
        audio.probe_many([tmp_path / "x.wav", here, tmp_path / "y.wav"], tmp_path / "cache")


def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / "a.wav", wav_bytes(tone(440, 1.0, 24_000).samples))
    settle(path)
    first = audio.probe(path, tmp_path / "cache")
    times = path.stat().st_mtime
    path.write_bytes(bytes(path.stat().st_size))  # other bytes under the same size and time
    os.utime(path, (times, times))
    assert audio.probe(path, tmp_path / "cache") == first
    settle(path)
    os.utime(path, (times + 10, times + 10))
    assert audio.probe(path, tmp_path / "cache").problem


def test_processes_share_one_cache(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{n}.wav", wav_bytes(tone(300 + n, 0.1, 24_000).samples)) for n in range(300)]
    settle(*paths)
    code = (
        "import sys, audio; from pathlib import Path; root = Path(sys.argv[1])\n"
        "print(hash(tuple(audio.probe_many(sorted(root.glob('*.wav')), root / 'cache'))))"
    )
    env = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, str(tmp_path)]
    running = [
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = [process.communicate(timeout=120) for process in running]
    assert {err for _, err in said} == {""}
    assert len({out for out, _ in said}) == 1
    assert all(probe.seconds == 0.1 for probe in audio.probe_many(paths, tmp_path / "cache"))
