"""Tells a retest's verdict: Markdown for people, JSON for programs, JUnit for build servers, a webhook for chats.

Invariant: what cannot be delivered is said and never blocks or changes a verdict; text that came from elsewhere is
escaped.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

WEBHOOK_ATTEMPTS = 3
WEBHOOK_TIMEOUT_S = 5.0
FAILING = ("worse", "environment changed", "judge changed")


def files(retest: Mapping[str, Any]) -> dict[str, bytes]:
    """The retest as files: `retest.md`, `retest.json`, `retest.xml`."""
    return {
        "retest.md": markdown(retest).encode(),
        "retest.json": json.dumps(retest, ensure_ascii=False, indent=1).encode(),
        "retest.xml": junit(retest),
    }


def write(folder: Path, retest: Mapping[str, Any]) -> Path:
    """Writes the files; returns the Markdown's path."""
    target = folder / f"{retest['name']}-{retest['fingerprint'][:16]}-{retest['suite'][:12]}"
    target.mkdir(parents=True, exist_ok=True)
    for name, content in files(retest).items():
        (target / name).write_bytes(content)
    return target / "retest.md"


def markdown(retest: Mapping[str, Any]) -> str:
    """For people."""
    lines = [
        f"# {retest['candidate']}: {retest['verdict']}",
        "",
        f"Against {retest['baseline'] or 'nothing: it is the baseline'}; suite {retest['suite'][:12]}, {retest['at']}.",
        "",
    ]
    if retest["verdicts"]:
        lines += ["| cell | metric | verdict | why |", "| --- | --- | --- | --- |"]
        lines += [
            "| " + " | ".join(_cell(v[key]) for key in ("cell", "metric", "kind", "reason")) + " |"
            for v in retest["verdicts"]
        ]
    if retest.get("slices"):
        lines += ["", "Where to look (false discovery rate 5 %, no verdict):", ""]
        lines += [f"- {_cell(json.dumps(s, ensure_ascii=False))}" for s in retest["slices"]]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def junit(retest: Mapping[str, Any]) -> bytes:
    """For build servers: a test a verdict; `worse` and what voids verdicts are failures, `inconclusive` is skipped."""
    kinds = [v["kind"] for v in retest["verdicts"]]
    suite = ElementTree.Element(
        "testsuite",
        name=f"retest {retest['name']}: {retest['candidate']}",
        tests=str(len(kinds)),
        failures=str(sum(kind in FAILING for kind in kinds)),
        skipped=str(kinds.count("inconclusive")),
    )
    for v in retest["verdicts"]:
        case = ElementTree.SubElement(suite, "testcase", classname=v["cell"], name=v["metric"])
        if v["kind"] in FAILING:
            ElementTree.SubElement(case, "failure", message=v["kind"]).text = v["reason"]
        elif v["kind"] == "inconclusive":
            ElementTree.SubElement(case, "skipped", message=v["reason"])
    text: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text


def post(url: str, retest: Mapping[str, Any], wait_s: float = 1.0) -> str:
    """Posts the JSON to a webhook; returns why it could not be delivered, empty where it was."""
    body = json.dumps({"text": f"{retest['candidate']}: {retest['verdict']}", "retest": retest}).encode()
    problem = ""
    for attempt in range(WEBHOOK_ATTEMPTS):
        if attempt:
            time.sleep(wait_s * attempt)
        try:
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=WEBHOOK_TIMEOUT_S):
                return ""
        except (urllib.error.URLError, OSError, ValueError) as error:
            problem = (
                f"webhook not delivered: {type(error).__name__}: {getattr(error, 'reason', None) or error}"
            )
    return problem
