"""Digests of files and folders, and the cache behind them: never a stale value, never a lost result."""

import hashlib
import logging
import os
import time
from pathlib import Path

import pytest

from farm.digests import cache_path, file_digest, folder_digest, remembered


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache") / "files.sqlite"


def write(path: Path, text: str, age_s: float = 60.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    then = time.time() - age_s
    os.utime(path, (then, then))
    return path


def counted(cache: Path, paths: list[Path], kind: str = "length") -> list[str]:
    """Files that had to be computed."""
    seen: list[str] = []

    def compute(path: object) -> str:
        seen.append(Path(str(path)).name)
        return str(Path(str(path)).stat().st_size)

    assert remembered(paths, kind, compute, cache=cache) == [str(p.stat().st_size) for p in paths]
    return seen


def test_a_files_digest_is_the_sha256_of_its_bytes(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path / "a", "weights")
    assert file_digest(path, cache) == hashlib.sha256(b"weights").hexdigest()
    assert file_digest(path, cache) == hashlib.sha256(b"weights").hexdigest()


def test_a_file_is_computed_once_until_it_changes(tmp_path: Path, cache: Path) -> None:
    a, b = write(tmp_path / "a", "one"), write(tmp_path / "b", "two")
    assert counted(cache, [a, b, a]) == ["a", "b"]
    assert counted(cache, [a, b]) == []
    write(a, "three")
    assert counted(cache, [a, b]) == ["a"]
    write(b, "owt", age_s=30)
    assert counted(cache, [a, b]) == ["b"]


def test_kinds_are_kept_apart(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path / "a", "one")
    assert counted(cache, [path], "length 1") == ["a"]
    assert counted(cache, [path], "length 2") == ["a"]


def test_a_file_that_was_just_written_is_not_remembered(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path / "a", "one", age_s=0)
    assert counted(cache, [path]) == ["a"]
    assert counted(cache, [path]) == ["a"]


def test_what_was_read_from_a_file_that_changed_meanwhile_is_not_remembered(
    tmp_path: Path, cache: Path
) -> None:
    path = write(tmp_path / "a", "one")
    times = path.stat().st_mtime_ns

    def swapped(_: object) -> str:
        return write(path, "two", age_s=90).read_text()

    assert remembered([path], "text", swapped, cache=cache) == ["two"]
    write(path, "one")
    os.utime(path, ns=(times, times))
    assert remembered([path], "text", lambda p: Path(p).read_text(), cache=cache) == ["one"]


def test_the_default_cache_is_in_the_users_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_path() == tmp_path / "xdg" / "speechfarm" / "files.sqlite"
    file_digest(write(tmp_path / "a", "one"))
    assert cache_path().is_file()


def test_a_broken_cache_costs_a_warning_not_the_result(
    tmp_path: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.write_text("this is no database, whatever its name says" * 100)
    path = write(tmp_path / "a", "one")
    with caplog.at_level(logging.WARNING):
        assert file_digest(path, cache) == hashlib.sha256(b"one").hexdigest()
    assert str(cache) in caplog.text


def test_a_cache_folder_that_cannot_be_made_costs_a_warning_not_the_result(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "a", "one")
    assert file_digest(path, path / "cache") == hashlib.sha256(b"one").hexdigest()
    assert "cannot be read" in caplog.text


def test_missing_files_are_all_named(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(ValueError, match=r"no such file: .*/x, .*/y"):
        remembered([tmp_path / "x", tmp_path / "y"], "length", str, cache=cache)


def test_two_folders_of_one_content_have_one_digest(tmp_path: Path, cache: Path) -> None:
    for root in ("one", "two"):
        write(tmp_path / root / "config.json", "{}")
        write(tmp_path / root / "sub" / "model.bin", "weights")
    write(tmp_path / "two" / ".cache" / "lock", "hub")
    write(tmp_path / "two" / ".gitattributes", "lfs")
    assert folder_digest(tmp_path / "one", cache) == folder_digest(tmp_path / "two", cache)


@pytest.mark.parametrize("change", ["bytes", "name", "more", "moved"])
def test_any_change_of_a_folder_changes_its_digest(tmp_path: Path, cache: Path, change: str) -> None:
    write(tmp_path / "m" / "a.bin", "weights")
    write(tmp_path / "m" / "sub" / "b.bin", "more")
    before = folder_digest(tmp_path / "m", cache)
    if change == "bytes":
        write(tmp_path / "m" / "sub" / "b.bin", "mare", age_s=30)
    elif change == "name":
        (tmp_path / "m" / "a.bin").rename(tmp_path / "m" / "c.bin")
    elif change == "more":
        write(tmp_path / "m" / "new.bin", "")
    else:
        (tmp_path / "m" / "sub" / "b.bin").rename(tmp_path / "m" / "b.bin")
    assert folder_digest(tmp_path / "m", cache) != before


def test_links_are_followed_as_hub_caches_make_them(tmp_path: Path, cache: Path) -> None:
    write(tmp_path / "plain" / "model.bin", "weights")
    blob = write(tmp_path / "hub" / "blobs" / "c0ffee", "weights")
    snapshot = tmp_path / "hub" / "snapshots"
    snapshot.mkdir()
    (snapshot / "model.bin").symlink_to(blob)
    assert folder_digest(snapshot, cache) == folder_digest(tmp_path / "plain", cache)
    write(tmp_path / "plain" / "sub" / "b.bin", "more")
    (snapshot / "sub").symlink_to(write(tmp_path / "elsewhere" / "b.bin", "more").parent)
    (tmp_path / "linked").symlink_to(snapshot)
    assert folder_digest(tmp_path / "linked", cache) == folder_digest(tmp_path / "plain", cache)


def test_a_link_back_up_does_not_go_round_for_ever(tmp_path: Path, cache: Path) -> None:
    write(tmp_path / "m" / "sub" / "a.bin", "weights")
    before = folder_digest(tmp_path / "m", cache)
    (tmp_path / "m" / "sub" / "again").symlink_to(tmp_path / "m")
    assert folder_digest(tmp_path / "m", cache) == before


def test_a_folder_without_files_or_with_a_broken_link_is_refused(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(ValueError, match="no such folder"):
        folder_digest(tmp_path / "gone", cache)
    (tmp_path / "bare").mkdir()
    with pytest.raises(ValueError, match="no files in this folder"):
        folder_digest(tmp_path / "bare", cache)
    (tmp_path / "bare" / "model.bin").symlink_to(tmp_path / "gone.bin")
    with pytest.raises(ValueError, match=r"no such file: .*bare/model\.bin"):
        folder_digest(tmp_path / "bare", cache)
