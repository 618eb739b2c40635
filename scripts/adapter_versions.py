"""Records which source each adapter's version stands for: `python scripts/adapter_versions.py` after a version's bump.

An adapter's version is part of every trial's id: a change that could change a reply, under the same version, would mix
old and new replies in one cell. `check` finds such a change by a digest of the adapter's module and of every module of
models/ and speech/ that it imports, without comments, docstrings and blank lines; a test runs it.

    python scripts/adapter_versions.py                       # after `version = "2"` in the adapter
    python scripts/adapter_versions.py --replies-unchanged   # after a change that provably changes no reply

Invariant: a record is replaced only where the version was raised, or where a person says that replies are the same.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import yaml

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "models" / "versions.json"
HASHED = ("models", "speech")
"""Folders whose code makes replies."""


class Record(TypedDict):
    """What one adapter's version stood for when it was recorded."""

    version: str
    source: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes models/versions.json; returns the exit status: 1 where a version has to be raised first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--replies-unchanged", action="store_true", help="record changed source under its old version"
    )
    unchanged = parser.parse_args(arguments).replies_unchanged
    now, recorded = current(), read()
    if not unchanged and (problems := [p for p in check(now, recorded) if "bump" in p]):
        print("\n".join(problems), file=sys.stderr)
        return 1
    RECORD.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


def check(now: Mapping[str, Record], recorded: Mapping[str, Record]) -> list[str]:
    """What does not hold: an adapter whose source changed under its version, or that is not recorded as it is."""
    problems = []
    for name, record in now.items():
        old = recorded.get(name)
        if old is None or old["version"] != record["version"]:
            problems.append(f"{name} {record['version']} is not recorded: python scripts/adapter_versions.py")
        elif old["source"] != record["source"]:
            problems.append(
                f"{name}: its source changed, its version {record['version']} did not: bump it, then python "
                "scripts/adapter_versions.py (--replies-unchanged instead of the bump if no reply can change)"
            )
    return problems + [f"{name} is recorded and gone" for name in recorded if name not in now]


def read() -> dict[str, Record]:
    """What is recorded."""
    found: dict[str, Record] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return found


def current() -> dict[str, Record]:
    """Every class that an option of conf/model/ names -> its version and its source's digest."""
    from hydra.utils import get_class

    names = sorted({name for path in (ROOT / "conf" / "model").rglob("*.yaml") for name in _targets(path)})
    return {
        name: Record(
            version=str(get_class(name).version),  # type: ignore[attr-defined]
            source=source_digest(name.rpartition(".")[0]),
        )
        for name in names
    }


def _targets(path: Path) -> Iterator[str]:
    def walk(node: object) -> Iterator[str]:
        if isinstance(node, dict):
            for key, value in node.items():
                if key == "_target_":
                    yield value
                else:
                    yield from walk(value)

    yield from walk(yaml.safe_load(path.read_text(encoding="utf-8")))


def source_digest(module: str) -> str:
    """SHA-256 over the code of a module and of those of `HASHED` that it imports, however far down."""
    reached: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = ROOT / (name.replace(".", "/") + ".py")
        if name in reached or name.split(".")[0] not in HASHED or not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        reached[name] = code(text)
        waiting += _imported(text)
    whole = "\n".join(f"# {name}\n{reached[name]}" for name in sorted(reached))
    return hashlib.sha256(whole.encode()).hexdigest()


def _imported(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def code(text: str) -> str:
    """A module's lines without docstrings, comments of their own line, and blank lines."""
    described: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                described |= set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    lines = [line.rstrip() for number, line in enumerate(text.splitlines(), 1) if number not in described]
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))


if __name__ == "__main__":
    sys.exit(main())
