"""Scripts find their neighbours because Python puts a script's own folder on its path; so do their tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
