"""The saved view decodes as the UI decodes it: python -m pytest tests/tracking/test_saved_view.py."""

import base64
import json
import zlib

from tracking import saved_view


def test_view_decodes_and_its_charts_lie_in_its_first_section() -> None:
    name, value = saved_view.tag(["quality/nisqa_mos"], ["quality"], 1)
    assert name == f"mlflow.sharedViewState.{saved_view.KEY}"
    view = json.loads(value)
    assert isinstance(view["name"], str) and isinstance(view["createdAt"], int)
    header, packed = view["state"].split(";", 1)
    assert header == "deflate"
    state = json.loads(zlib.decompress(base64.b64decode(packed)))
    first, *others = state["compareRunSections"]
    assert [chart["metricSectionId"] for chart in state["compareRunCharts"]] == [first["uuid"]]
    assert [section["name"] for section in others] == ["quality", "Model metrics", "System metrics"]
