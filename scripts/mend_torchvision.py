"""Makes `import torchvision` work in an environment where it fails: `python scripts/mend_torchvision.py [PYTHON]`.

Invariant: an environment whose torchvision imports is left as it is; after a mend it has been seen to import.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HOOK = Path(__file__).with_name("torchvision_operators.py")


class MendError(Exception):
    """What went wrong, in one line for the user."""


def mend(python: Path) -> bool:
    """Installs the hook into the environment of an interpreter if its torchvision needs it.

    Args:
        python: An interpreter with torch and torchvision installed.

    Returns:
        Whether the hook was installed.

    Raises:
        MendError: torchvision does not import even with it.
    """
    if not _complaint(python):
        return False
    packages = Path(_output(python, "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    shutil.copy(HOOK, packages / HOOK.name)
    (packages / f"{HOOK.stem}.pth").write_text(f"import {HOOK.stem}\n")
    if complaint := _complaint(python):
        raise MendError(f"torchvision does not import in {python}: {complaint}")
    return True


def _complaint(python: Path) -> str:
    """The last line of what importing torchvision prints, empty where it works."""
    done = subprocess.run([str(python), "-c", "import torchvision"], capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it crashed"])[-1]


def _output(python: Path, code: str) -> str:
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Returns the exit status."""
    python = Path(sys.argv[1] if len(sys.argv) > 1 else sys.executable)
    try:
        mended = mend(python)
    except MendError as error:
        print(f"mend_torchvision: {error}", file=sys.stderr)
        return 1
    print(f"torchvision imports in {python}" + (" now (operator schemas were missing)" if mended else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
