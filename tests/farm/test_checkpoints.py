from pathlib import Path

import pytest

from farm.checkpoints import local, source


def test_a_folder_has_no_revision(tmp_path: Path) -> None:
    assert source({"path": str(tmp_path)}) == (str(tmp_path), None)


def test_a_repository_keeps_its_revision() -> None:
    assert source({"repo": "openai/whisper-large-v3", "revision": "06f233f"}) == (
        "openai/whisper-large-v3",
        "06f233f",
    )
    assert source({"repo": "openai/whisper-large-v3", "revision": None}) == ("openai/whisper-large-v3", None)


def test_a_missing_folder_names_itself_and_what_brings_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no checkpoint at .*gone; made by: python scripts/x.py"):
        source({"path": str(tmp_path / "gone"), "made_by": "python scripts/x.py"})


@pytest.mark.parametrize("checkpoint", [{}, {"url": "x"}, {"path": ".", "repo": "a/b"}])
def test_another_shape_is_refused(checkpoint: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="either `path`, or `repo` and `revision`"):
        source(checkpoint)


def test_a_component_that_needs_local_files_refuses_a_repository() -> None:
    with pytest.raises(ValueError, match="only a local `path`"):
        local({"repo": "a/b", "revision": "c"})
