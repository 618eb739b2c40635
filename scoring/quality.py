"""Quality of reply speech, predicted by networks that need no reference, each under its own name.

| scorer | metrics, `quality/...` | weights |
| --- | --- | --- |
| `Nisqa` | `nisqa_mos`, `_noisiness`, `_discontinuity`, `_coloration`, `_loudness` | `scripts/fetch_weights.py nisqa` |
| `Dnsmos` | `dnsmos_ovrl`, `_sig`, `_bak`, `_p808` | inside the package `speechmos` |
| `DistillMos` | `distillmos` | inside the package `distillmos` |
| `Utmos` | `utmos` | `scripts/fetch_weights.py utmos` |

Invariant: exactly one score for each reply and name, with a finite value or with a status and a reason. Missing weights
are `unavailable` with the command that brings them; speech that is silent, below 8 kHz or shorter than 0.25 s is
`not_applicable`; samples that are not finite are `failed`; clipped speech is scored as it sounds. Replies are judged
one by one: a score is the same in every batch. Importing this module imports no torch.
"""

from __future__ import annotations

from scoring.distillmos import DistillMos
from scoring.dnsmos import Dnsmos
from scoring.nisqa import Nisqa
from scoring.utmos import Utmos

__all__ = ["DistillMos", "Dnsmos", "Nisqa", "Utmos"]
