"""What a sweep tells of itself, shown in MLflow by one thread that alone speaks to it.

Invariant: no call here waits for MLflow. An update is written to the spool on disk and taken from there; running means
stay in memory, the oldest given up where MLflow stays away. What is pending at the end is caught up by the next sweep.
"""

from __future__ import annotations

import hashlib
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from farm.metrics import CellSummary, Metric
from farm.records import CellRecord
from tracking import database, runs, saved_view
from tracking.mlflow_writer import AwayError, Point, RefusedError, Writer
from tracking.spool import RunUpdate, Spool, read

FIRST_RETRY_S, LONGEST_RETRY_S = 1.0, 30.0
POINTS_KEPT = 20_000
REFUSALS = 3
"""An update that MLflow refuses this often is set aside in the spool's `rejected` folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingOptions:
    """`conf/tracking/`."""

    uri: str = "sqlite:///mlflow.db"
    enabled: bool = True
    experiment_prefix: str = "speechfarm"
    artifacts_location: str | None = None
    """Null: `mlartifacts` beside a SQLite file, else what the server decides."""
    flush_s: float = 2.0
    worst_samples: int = 5
    """Speech replies of each cell that can be played in the UI, worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerReport:
    """How the tracking of a sweep ended."""

    pending: int = 0
    """Updates left in the spool for the next sweep or `python jobs/track.py`."""
    rejected: int = 0
    runs: int = 0
    """Runs written."""
    waited_s: float = 0.0
    """Seconds that the driver spent in tracking calls."""
    links: tuple[str, ...] = ()
    problem: str = ""
    """Why MLflow did not take what is pending."""


class Tracker(Protocol):
    """What the projection and the sweep talk to."""

    worst_samples: int
    enabled: bool

    def begin(self, records: Sequence[CellRecord], sweep_record: Mapping[str, Any]) -> None:
        """Shows the cells as running. `sweep_record` has `sweep_id` and what else a reader wants to know."""
        ...

    def progress(self, cell_id: str, metrics: Mapping[str, float], step: int) -> None:
        """Running means after `step` trials of a cell, shown as `running/<name>`."""
        ...

    def finish_cell(
        self,
        record: CellRecord,
        metrics: Sequence[Metric],
        rows: Sequence[Mapping[str, Any]],
        files: Mapping[str, bytes],
    ) -> None:
        """A cell's metrics, its item table (a row a trial) and further artifacts."""
        ...

    def finish_sweep(self, sweep_record: Mapping[str, Any], summaries: Sequence[CellSummary]) -> None:
        """The summary run of a sweep, with the leaderboard."""
        ...

    def finish_retest(self, retest: Mapping[str, Any], benchmark: str, files: Mapping[str, bytes]) -> None:
        """The run of a retest (`kind=retest`): its verdict, and what it was made from."""
        ...

    def timed(self) -> Any:
        """A context whose time counts as `waited_s`."""
        ...

    def close(self, timeout_s: float = 30.0) -> TrackerReport:
        """Writes what is left, for `timeout_s` at most."""
        ...


def open_tracker(options: TrackingOptions, spool_dir: Path) -> Tracker:
    """Starts the writer; MLflow need not be there.

    Args:
        options: where runs go.
        spool_dir: a local folder; what an earlier sweep left there for the same URI is caught up now.
    """
    return MlflowTracker(options, spool_dir) if options.enabled else NoTracker()


class NoTracker:
    """`tracking=off`."""

    worst_samples = 0
    enabled = False

    def begin(self, records: Sequence[CellRecord], sweep_record: Mapping[str, Any]) -> None:
        """Does nothing."""

    def progress(self, cell_id: str, metrics: Mapping[str, float], step: int) -> None:
        """Does nothing."""

    def finish_cell(
        self,
        record: CellRecord,
        metrics: Sequence[Metric],
        rows: Sequence[Mapping[str, Any]],
        files: Mapping[str, bytes],
    ) -> None:
        """Does nothing."""

    def finish_sweep(self, sweep_record: Mapping[str, Any], summaries: Sequence[CellSummary]) -> None:
        """Does nothing."""

    def finish_retest(self, retest: Mapping[str, Any], benchmark: str, files: Mapping[str, bytes]) -> None:
        """Nothing."""

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Counts nothing."""
        yield

    def close(self, timeout_s: float = 30.0) -> TrackerReport:
        """Reports nothing."""
        return TrackerReport()


class MlflowTracker:
    """A spool and the thread that empties it into MLflow."""

    enabled = True

    def __init__(self, options: TrackingOptions, spool_dir: Path) -> None:
        self._options = options
        self._uri = database.absolute(options.uri)
        self._spool = Spool(spool_dir / hashlib.sha256(self._uri.encode()).hexdigest()[:12])
        self._points: deque[Point] = deque(maxlen=POINTS_KEPT)
        self._closing, self._abandoned = threading.Event(), threading.Event()
        self._writer: Writer | None = None
        self._refusals: dict[str, int] = {}
        self._written: set[str] = set()
        self._experiments: set[str] = set()
        self._rejected = 0
        self._problem = ""
        self._waited_s = 0.0
        self._depth = 0
        self.worst_samples = options.worst_samples
        self._thread = threading.Thread(target=self._work, name="mlflow-writer", daemon=True)
        self._thread.start()

    # --- the driver's side ---

    def begin(self, records: Sequence[CellRecord], sweep_record: Mapping[str, Any]) -> None:
        """Shows the cells as running."""
        with self.timed():
            prefix = self._options.experiment_prefix
            for record in records:
                self._put(runs.cell_begun(record, prefix), {})
            for benchmark in dict.fromkeys(record.benchmark for record in records):
                chosen = [record for record in records if record.benchmark == benchmark]
                self._put(*runs.sweep_begun(sweep_record, benchmark, chosen, prefix))

    def progress(self, cell_id: str, metrics: Mapping[str, float], step: int) -> None:
        """Running means after `step` trials of a cell."""
        self._points.append(Point(cell_id, dict(metrics), step, time.time_ns() // 1_000_000))

    def finish_cell(
        self,
        record: CellRecord,
        metrics: Sequence[Metric],
        rows: Sequence[Mapping[str, Any]],
        files: Mapping[str, bytes],
    ) -> None:
        """A cell's metrics, item table and artifacts."""
        with self.timed():
            update, own = runs.cell_finished(record, metrics, rows, self._options.experiment_prefix)
            self._put(update, {**own, **files})

    def finish_sweep(self, sweep_record: Mapping[str, Any], summaries: Sequence[CellSummary]) -> None:
        """The summary run, with the leaderboard."""
        with self.timed():
            for benchmark in dict.fromkeys(s.record.benchmark for s in summaries):
                chosen = [s for s in summaries if s.record.benchmark == benchmark]
                self._put(
                    *runs.sweep_finished(sweep_record, benchmark, chosen, self._options.experiment_prefix)
                )

    def finish_retest(self, retest: Mapping[str, Any], benchmark: str, files: Mapping[str, bytes]) -> None:
        """The run of a retest (`kind=retest`): its verdict, and what it was made from."""
        with self.timed():
            self._put(runs.retested(retest, benchmark, self._options.experiment_prefix), files)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Counts the time inside as waited, once where nested."""
        start_s = time.perf_counter()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._waited_s += time.perf_counter() - start_s

    def close(self, timeout_s: float = 30.0) -> TrackerReport:
        """Writes what is left, for `timeout_s` at most; the rest waits in the spool."""
        with self.timed():
            self._closing.set()
            self._thread.join(timeout_s)
            self._abandoned.set()
        return TrackerReport(
            pending=len(self._spool.waiting()),
            rejected=self._rejected,
            runs=len(self._written),
            waited_s=self._waited_s,
            links=self._links(),
            problem=self._problem,
        )

    def _put(self, update: RunUpdate, files: Mapping[str, bytes]) -> None:
        self._experiments.add(update.experiment)
        self._spool.put(update, files)

    def _links(self) -> tuple[str, ...]:
        known = self._writer.experiments if self._writer else {}
        base = database.ui_url(self._uri)
        return tuple(link(base, known[name]) for name in sorted(self._experiments) if name in known)

    # --- the writer's side ---

    def _work(self) -> None:
        try:
            self._write_until_closed()
        except Exception as error:  # noqa: BLE001 - the thread's end must be told: what it left waits in the spool
            traceback.print_exc()
            self._problem = f"the writer stopped: {type(error).__name__}: {error}"
        finally:
            self._spool.release()

    def _write_until_closed(self) -> None:
        retry_s = FIRST_RETRY_S
        while not self._abandoned.is_set():
            closing = self._closing.is_set()
            self._problem = self._round()
            if closing and (self._problem or not (self._spool.waiting() or self._points)):
                break
            retry_s = min(2 * retry_s, LONGEST_RETRY_S) if self._problem else FIRST_RETRY_S
            self._closing.wait(retry_s if self._problem else self._options.flush_s)

    def _round(self) -> str:
        """Writes all that waits; returns why not, if not."""
        if not self._spool.acquire():
            return f"another process empties {self._spool.folder}"
        self._spool.drop_superseded()
        if not self._spool.waiting() and not self._points:
            return ""
        try:
            writer = self._writer = self._writer or Writer(self._uri, self._location())
            for entry in self._spool.waiting():
                if self._abandoned.is_set():
                    return "stopped"
                self._take(writer, entry)
            self._flush_points(writer)
        except AwayError as error:
            return str(error)
        except RefusedError as error:
            return str(error)
        return ""

    def _take(self, writer: Writer, entry: Path) -> None:
        update = read(entry)
        try:
            writer.apply(update, entry / "files")
        except RefusedError as error:
            writer.forget()
            self._refusals[entry.name] = self._refusals.get(entry.name, 0) + 1
            if self._refusals[entry.name] >= REFUSALS:
                self._spool.reject(entry, str(error))
                self._rejected += 1
            return
        self._written.add(update.key.split("-", 1)[1])
        self._spool.done(entry)

    def _flush_points(self, writer: Writer) -> None:
        points = [self._points.popleft() for _ in range(len(self._points))]
        try:
            writer.log_points(points)
        except AwayError:
            self._points.extendleft(reversed(points))
            raise

    def _location(self) -> str | None:
        if self._options.artifacts_location:
            return self._options.artifacts_location.rstrip("/")
        folder = database.artifacts_folder(self._uri)
        return folder.as_uri() if folder else None


def link(base: str, experiment_id: str) -> str:
    """Opens an experiment's cells as charts."""
    # The page ignores a saved view beside a search filter; the view has the filter in it.
    query = f"viewStateShareKey={saved_view.KEY}&compareRunsMode=CHART&workflowType=machine_learning"
    return f"{base}/#/experiments/{experiment_id}/runs?{query}"
