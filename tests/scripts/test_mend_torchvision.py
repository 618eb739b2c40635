"""Mending torchvision in a throw-away environment that borrows this one's packages but not its hook."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from scripts.mend_torchvision import HOOK, MendError, mend


def imports(python: Path) -> bool:
    code = "import torchvision.transforms, torchvision.ops"
    return subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0


def packages(python: Path) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.check_output([python, "-c", code], text=True).strip())


@pytest.fixture
def borrowing(tmp_path: Path) -> Path:
    """Its interpreter: a .pth inside a borrowed folder is not read, so that the hook does not come along."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    (packages(python) / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_torchvision_that_does_not_import_imports_after_the_mend(borrowing: Path) -> None:
    if imports(borrowing):
        pytest.skip("torchvision works here without a mend")
    assert mend(borrowing)
    assert imports(borrowing)
    assert (packages(borrowing) / HOOK.name).read_bytes() == HOOK.read_bytes()


def test_an_environment_that_works_is_left_as_it_is(borrowing: Path) -> None:
    (packages(borrowing) / "torchvision.py").write_text("")
    before = sorted(packages(borrowing).iterdir())
    assert not mend(borrowing)
    assert sorted(packages(borrowing).iterdir()) == before


def test_what_cannot_be_mended_is_said_with_its_last_line(borrowing: Path) -> None:
    (packages(borrowing) / "torchvision.py").write_text("raise ImportError('beyond repair')\n")
    with pytest.raises(MendError, match="does not import in .*: ImportError: beyond repair"):
        mend(borrowing)


def test_the_hook_costs_nothing_where_torchvision_is_not_imported() -> None:
    code = f"import runpy, sys; runpy.run_path({str(HOOK)!r}); print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-S", "-c", code], text=True).strip() == "False"
