"""`python jobs/track.py` on a real store: python -m pytest tests/jobs/test_track.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from farm.store import Store
from tests.farm.cells import ACCURACY, MOS, record, reply, score
from tests.tracking.results import tone

ROOT = Path(__file__).resolve().parents[2]


def track(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "jobs" / "track.py"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def filled_store(folder: Path) -> Store:
    store = Store.open(str(folder / "store"))
    for n in range(2):
        cell = record(f"c{n}", planned=2)
        store.put(cell.uri, cell.dump())
        for k in range(2):
            trial = f"c{n}t{k}"
            uri = store.speech_uri(trial, 1, 0)
            store.put(uri, tone())
            asked = {"benchmark": "toybench", "task": "toybench.talk", "model": "toy"}
            store.append_replies(
                [reply(trial, f"i{k}", f"u{k}", cell_id=cell.cell_id, speech_uri=uri) | asked]
            )
            for name, value in ((MOS, 2.0 + k), (ACCURACY, float(k))):
                row = score(trial, name, value, cell_id=cell.cell_id, benchmark="toybench")
                store.append_scores([{k: v for k, v in row.items() if k != "written_ns"}])
    store.flush(force=True)
    return store


def test_rebuilds_every_run_and_leaves_no_files_beside(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    filled_store(tmp_path)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    for _ in range(2):
        ended = track(f"store={tmp_path}/store", f"tracking.uri={uri}", folder=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert "2 cells of the store, 3 runs written" in ended.stdout
        assert "2.50 ± 0.50" in ended.stdout
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("speechfarm/toybench")
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.data.tags["kind"] for run in runs) == ["cell", "cell", "sweep"]
    assert {run.data.metrics[MOS] for run in runs if run.data.tags["kind"] == "cell"} == {2.5}
    assert not {"outputs", "mlruns", ".hydra"} & {path.name for path in tmp_path.iterdir()}


def test_a_store_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    ended = track(f"store={tmp_path}/nowhere", "tracking=off", folder=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1 and "nowhere" in ended.stderr
    assert not (tmp_path / "nowhere").exists()
