"""Opens MLflow on the demo's SQLite store; `make ui` calls it.

Invariant: shows what a sweep writes while it runs (write-ahead logging), and plays artifacts that were written without
the server: they lie in `mlartifacts`, which this server reads itself.

    python scripts/ui.py [--port 5000] [--host 127.0.0.1]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tracking import database

ROOT = Path(__file__).resolve().parents[1]
QUIET = {
    # Runners of generative-AI jobs: a gigabyte of memory that nothing here uses.
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
}


def command(database_file: Path, host: str, port: int) -> list[str]:
    """The server's command line."""
    artifacts = (database_file.parent / "mlartifacts").as_uri()
    return [
        *(sys.executable, "-m", "mlflow", "server", "--host", host, "--port", str(port), "--workers", "2"),
        *("--backend-store-uri", f"{database.SQLITE}{database_file}", "--default-artifact-root", artifacts),
        "--no-serve-artifacts",
    ]


def main() -> None:
    """Becomes the server."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5000)
    parser.add_argument("--database", type=Path, default=ROOT / "mlflow.db", help="SQLite file")
    chosen = parser.parse_args()
    file = chosen.database.resolve()
    database.prepare(f"{database.SQLITE}{file}")
    print(f"MLflow on {file}: http://{chosen.host}:{chosen.port} (Ctrl-C ends it)", flush=True)
    os.execvpe(sys.executable, command(file, chosen.host, chosen.port), {**os.environ, **QUIET})


if __name__ == "__main__":
    main()
