"""Writes a report: `report.html`, and beside it `tables/` and `audio/`.

Invariant: everything on the page is escaped but our own SVG; a file's name comes from a digest, never from what a model
or an item is called.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tracking.report.content import Section


def write(
    folder: Path,
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    fetch: Callable[[str], bytes],
    *,
    embed_audio: bool = False,
) -> Path:
    """Writes the page and what belongs to it; returns the page's path.

    Args:
        folder: made where it is not there.
        title: of the page.
        subtitle: where its numbers come from.
        sections: empty ones are left out.
        fetch: reads a speech URI of the store; raises FileNotFoundError where it is gone.
        embed_audio: puts the sounds into the page itself.
    """
    from jinja2 import Environment

    shown = [section for section in sections if not section.empty]
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    for table in (t for section in shown for t in section.tables):
        (folder / "tables" / f"{table.name}.csv").write_text(table.csv(), encoding="utf-8")
        (folder / "tables" / f"{table.name}.md").write_text(table.markdown(), encoding="utf-8")
    uris = {sound.uri for section in shown for sample in section.samples for sound in sample.sounds}
    sources = {uri: _source(uri, folder, fetch, embed_audio) for uri in sorted(uris)}
    template = Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8")
    page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(template)
    path = folder / "report.html"
    path.write_text(
        page.render(title=title, subtitle=subtitle, sections=shown, sources=sources), encoding="utf-8"
    )
    return path


def _source(uri: str, folder: Path, fetch: Callable[[str], bytes], embed: bool) -> str:
    """What a player plays: a file beside the page, or the sound itself; empty where it is gone."""
    try:
        sound = fetch(uri)
    except FileNotFoundError:
        return ""
    if embed:
        return f"data:audio/flac;base64,{base64.b64encode(sound).decode()}"
    name = f"audio/{hashlib.sha256(uri.encode()).hexdigest()[:16]}.flac"
    (folder / "audio").mkdir(exist_ok=True)
    (folder / name).write_bytes(sound)
    return name


def tables_of(sections: Iterable[Section]) -> list[str]:
    """Names of all tables, which must differ: they are names of files."""
    return [table.name for section in sections for table in section.tables]
