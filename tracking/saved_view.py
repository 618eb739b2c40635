"""A saved view of an experiment for MLflow's UI: the cells side by side as bars, the leaderboard's metrics first.

Invariant: nothing depends on it. The format is the UI's own and undocumented (read from MLflow 3.17: an experiment tag
with the page's state, deflated); where another version does not know it, the link opens the plain charts.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

KEY = "speechfarm-cells"
TAG = f"mlflow.sharedViewState.{KEY}"
TITLE = "Cells side by side"
OF_THE_UI = ("Model metrics", "System metrics")
"""Sections that the page makes itself; it starts afresh where they are missing."""
RUNS_SHOWN = 20
COLUMNS = ("model", "prompt", "condition", "task")


def tag(headline: Sequence[str], sections: Sequence[str], time_ms: int) -> tuple[str, str]:
    """The experiment tag that holds the view.

    Args:
        headline: metrics with a bar chart in the first section.
        sections: the other sections' names, which the page fills itself: `quality`, `speed`.
        time_ms: when the view was made.
    """
    packed = base64.b64encode(zlib.compress(json.dumps(state(headline, sections)).encode())).decode()
    view = {"name": TITLE, "createdAt": time_ms, "updatedAt": time_ms, "state": f"deflate;{packed}"}
    return TAG, json.dumps(view)


def state(headline: Sequence[str], sections: Sequence[str]) -> dict[str, Any]:
    """The page's state."""
    return {
        "searchFilter": "tags.kind = 'cell'",
        "orderByKey": "attributes.start_time",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": [f"tags.`{name}`" for name in COLUMNS],
        "columnOrder": [],
        "columnWidths": {},
        "runsExpanded": {},
        "runsPinned": [],
        "runsHidden": [],
        "runsVisibilityMap": {},
        "runsHiddenMode": "FIRST_20_RUNS",
        "compareRunCharts": [_bar(name) for name in headline],
        "compareRunSections": [_section(TITLE, generated=False), *map(_section, [*sections, *OF_THE_UI])],
        "viewMaximized": False,
        "runListHidden": False,
        "isAccordionReordered": True,
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "groupBy": None,
        "groupsExpanded": {},
        "autoRefreshEnabled": True,
        "globalLineChartConfig": {"xAxisKey": "step", "lineSmoothness": 0, "selectedXAxisMetricKey": ""},
    }


def _bar(metric: str) -> dict[str, Any]:
    return {
        "uuid": f"speechfarm-{metric}",
        "type": "BAR",
        "runsCountToCompare": RUNS_SHOWN,
        "metricSectionId": _section_id(TITLE),
        "deleted": False,
        "isGenerated": False,
        "displayName": metric,
        "metricKey": metric,
    }


def _section(name: str, *, generated: bool = True) -> dict[str, Any]:
    return {
        "uuid": _section_id(name),
        "name": name,
        "display": True,
        "isReordered": True,
        "deleted": False,
        "isGenerated": generated,
    }


def _section_id(name: str) -> str:
    return f"speechfarm-{name}"
