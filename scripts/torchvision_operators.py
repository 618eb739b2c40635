"""Lets a torchvision whose compiled part cannot load be imported beside a CPU build of torch.

PyPI's torchvision is built for CUDA. Beside a CPU torch its library does not load, and its import then fails on the
schema of an operator that the library would have defined; transformers sees torchvision installed and fails with it,
for every model. The schemas alone are enough for what speech models need of it: the image half of their processors.

Invariant: nothing happens before torchvision itself is imported; the operators stay without an implementation.
`scripts/mend_torchvision.py` copies this file into an environment, where a .pth file imports it at start-up.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_kept: list[Any] = []
"""torch forgets a library's operators when the library object dies."""


class OperatorsFirst:
    """Finds torchvision as Python does, and defines the missing operators right before it runs."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder.find_spec`."""
        if name != "torchvision":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            define()
            run(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def define() -> None:
    """Gives torch the schemas; once a process."""
    import torch

    if _kept:
        return
    library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for schema in SCHEMAS:
        library.define(schema)  # type: ignore[no-untyped-call]
    _kept.append(library)


sys.meta_path.insert(0, OperatorsFirst())
