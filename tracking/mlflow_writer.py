"""Run updates applied through one MlflowClient, used by one thread; no fluent API, no active run.

Invariant: applying an update twice changes nothing: a run is found again by its identity tags, and a metric keeps the
time of its update. MLflow is imported here only, when the first update is written.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tracking import database
from tracking.spool import RunUpdate

if TYPE_CHECKING:
    from mlflow.entities import Run

RUNNING = "running/"
"""Live means have names of their own: a metric with steps is drawn as a line, and cells are compared as bars."""
PROGRESS = "progress/"
LONGEST_PARAM = 6000
LONGEST_TAG = 8000
METRICS_A_BATCH = 1000
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
    # The spool repeats what fails; a hanging server must not hold the writer for the default two minutes a request.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}
LASTING = {
    "TEMPORARILY_UNAVAILABLE",
    "INTERNAL_ERROR",
    "REQUEST_LIMIT_EXCEEDED",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
}
"""Error codes of a server that is away or misconfigured: the update waits. Any other is a refusal of the update."""


class Point(NamedTuple):
    """Running means of one cell at one moment."""

    cell_id: str
    metrics: Mapping[str, float]
    step: int
    time_ms: int


class AwayError(Exception):
    """MLflow cannot be reached or cannot write: try again later."""


class RefusedError(Exception):
    """MLflow answered that it will not take this update."""


@dataclass(slots=True)
class _Known:
    run_id: str
    params: set[str]
    tags: dict[str, str]
    status: str
    artifact_uri: str
    has_artifacts: bool


class Writer:
    """Applies updates; remembers the runs and experiments it has met.

    Raises:
        AwayError: from every method, where MLflow is away.
        RefusedError: from every method, where it refuses the content.
    """

    def __init__(self, uri: str, artifacts_location: str | None) -> None:
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        with _translated():
            database.prepare(uri)
            from mlflow import MlflowClient

            for name in ("alembic", "mlflow"):
                logging.getLogger(name).setLevel(logging.WARNING)
            self._client = MlflowClient(tracking_uri=uri)
            self._client.search_experiments(max_results=1)
        self._uri = uri
        self._artifacts_location = artifacts_location
        self._known: dict[tuple[tuple[str, str], ...], _Known] = {}
        self._cells: dict[str, str] = {}
        self.experiments: dict[str, str] = {}
        """Name -> id."""

    def apply(self, update: RunUpdate, files: Path) -> None:
        """Makes the run what the update says, and creates it first where it is not there."""
        with _translated():
            known = self._run(update)
            self._log(known, update)
            self._upload(known, update, files)
            for name, value in update.experiment_tags.items():
                self._client.set_experiment_tag(self._experiment(update.experiment), name, value)
            if update.status != "RUNNING":
                self._client.set_terminated(known.run_id, status=update.status, end_time=update.time_ms)
            elif known.status != "RUNNING":
                self._client.update_run(known.run_id, status="RUNNING")
            known.status = update.status

    def log_points(self, points: Iterable[Point]) -> None:
        """Adds running means to the runs of their cells: one batch a run."""
        from mlflow.entities import Metric

        by_run: dict[str, list[Metric]] = {}
        for point in points:
            if point.cell_id in self._cells:
                metrics = [
                    Metric(RUNNING + k, v, point.time_ms, point.step) for k, v in point.metrics.items()
                ]
                by_run.setdefault(self._cells[point.cell_id], []).extend(metrics)
        with _translated():
            for run_id, metrics in by_run.items():
                for start in range(0, len(metrics), METRICS_A_BATCH):
                    self._client.log_batch(run_id, metrics=metrics[start : start + METRICS_A_BATCH])

    def forget(self) -> None:
        """Looks every run and experiment up again: one may have been deleted in the UI."""
        self._known.clear()
        self.experiments.clear()

    def _experiment(self, name: str) -> str:
        if name not in self.experiments:
            found = self._client.get_experiment_by_name(name)
            self.experiments[name] = found.experiment_id if found else self._new_experiment(name)
        return self.experiments[name]

    def _new_experiment(self, name: str) -> str:
        location = f"{self._artifacts_location}/{name}" if self._artifacts_location else None
        return self._client.create_experiment(name, artifact_location=location)

    def _run(self, update: RunUpdate) -> _Known:
        key = tuple(sorted(update.identity.items()))
        if key not in self._known:
            experiment_id = self._experiment(update.experiment)
            found = self._find(experiment_id, update)
            tags = {**update.identity, **_tags(update)}
            run = found or self._client.create_run(
                experiment_id, tags=tags, run_name=update.name, start_time=update.time_ms
            )
            self._known[key] = _Known(
                run.info.run_id,
                set(run.data.params),
                dict(run.data.tags),
                run.info.status,
                run.info.artifact_uri,
                has_artifacts=found is not None,
            )
            if "cell_id" in update.identity:
                self._cells[update.identity["cell_id"]] = run.info.run_id
        return self._known[key]

    def _find(self, experiment_id: str, update: RunUpdate) -> Run | None:
        query = " and ".join(f"tags.{tag} = '{value}'" for tag, value in update.identity.items())
        return next(iter(self._client.search_runs([experiment_id], query, max_results=1)), None)

    def _log(self, known: _Known, update: RunUpdate) -> None:
        from mlflow.entities import Metric, Param, RunTag

        # A run's params cannot be changed.
        new = {name: value for name, value in update.params.items() if name not in known.params}
        # What is there already is not sent again: that would be a sixth of the time of all.
        tags = {name: value for name, value in _tags(update).items() if known.tags.get(name) != value}
        self._client.log_batch(
            known.run_id,
            # Always step 0: of values at one step the latest counts, and the UI draws bars instead of lines.
            metrics=[Metric(k, v, update.time_ms, 0) for k, v in update.metrics.items()],
            params=[Param(name, value[:LONGEST_PARAM]) for name, value in new.items()],
            tags=[RunTag(name, value) for name, value in tags.items()],
        )
        known.params |= set(new)
        known.tags |= tags

    def _upload(self, known: _Known, update: RunUpdate, files: Path) -> None:
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        if not any(files.iterdir()):
            return
        # Straight to the run's artifacts: through the client each call would read the run again first.
        repository = get_artifact_repository(known.artifact_uri, tracking_uri=self._uri)
        for folder in update.replaces if known.has_artifacts else ():
            if repository.list_artifacts(folder):
                repository.delete_artifacts(folder)  # type: ignore[no-untyped-call]
        repository.log_artifacts(str(files))  # type: ignore[no-untyped-call]
        known.has_artifacts = True


def _tags(update: RunUpdate) -> dict[str, str]:
    return {name: value[:LONGEST_TAG] for name, value in update.tags.items()}


def live_name(name: str) -> str:
    """`running/quality/nisqa_mos`; what counts progress keeps its name."""
    return name if name.startswith(PROGRESS) else RUNNING + name


class _translated:
    """Turns what MLflow raises into `AwayError` or `RefusedError`."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is None:
            return
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        if isinstance(error, MlflowException) and error.error_code not in LASTING:
            raise RefusedError(_first_line(error)) from error
        if isinstance(error, MlflowException | SQLAlchemyError | sqlite3.Error | OSError):
            raise AwayError(_first_line(error)) from error


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0][:300]


def logged_table(path: str) -> dict[str, str]:
    """The tag that makes a JSON artifact a table of MLflow's evaluation view."""
    return {"mlflow.loggedArtifacts": json.dumps([{"path": path, "type": "table"}])}
