"""BERTScore of a reply against reference replies, raw and rescaled: two metrics, never one.

Invariant: the encoder and its layer are part of every score's identity; the rescaled value is there only where the
package has a baseline of that encoder and layer.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

from farm.checkpoints import source
from farm.types import Item, Reply, Score
from scoring.reply_speech import package_folder
from scoring.text import Held, Names, Settings, rater_of, score_all
from scoring.weights import fingerprint, missing


class BertScore:
    """F1 of BERTScore (Zhang et al., ICLR 2020), the best of all references; 0 for an empty reply.

    EchoMind's released code takes bert-base-uncased and rescales with the package's baseline; its published values look
    like raw ones. So `text/bertscore_f1` is raw and `text/bertscore_f1_rescaled` is rescaled (0 is what two unrelated
    English sentences have; it can be negative).

    Args:
        checkpoint: an encoder of transformers.
        layer: whose hidden states are compared: 9 of bert-base-uncased.
        baseline: name of the package's baseline for that encoder; None: there is none, and no rescaled value.
        note: what a reader of the metric must know of this encoder.
        device: where the encoder runs.
    """

    version = "1"

    def __init__(
        self,
        *,
        checkpoint: Settings,
        layer: int,
        baseline: str | None = None,
        note: str = "",
        device: str = "cpu",
    ) -> None:
        settings = {"checkpoint": checkpoint}
        self._missing = missing(settings)
        names = ("text/bertscore_f1", *(("text/bertscore_f1_rescaled",) if baseline else ()))
        self._names = Names(names=names, rater=rater_of("bertscore", fingerprint(settings)))
        self._note = note
        self._baseline = None if baseline is None else baseline_f1(baseline, layer)
        self._scorer = None if self._missing else _load(checkpoint, layer, device)

    @classmethod
    def weights_fingerprint(cls, config: Settings) -> str:
        """Of the encoder; empty where it is missing."""
        return fingerprint({"checkpoint": config["checkpoint"]})

    @classmethod
    def check(cls, arguments: Settings) -> None:
        """Refuses a baseline that the package does not have."""
        if arguments.get("baseline"):
            baseline_f1(str(arguments["baseline"]), int(arguments["layer"]))

    def score(self, heard: Sequence[tuple[Item, Reply]]) -> list[list[Score]]:
        """One or two scores for each reply."""
        if self._missing:
            return [self._names.without("unavailable", self._missing) for _ in heard]
        return score_all(heard, self._names, "references", self._scored)

    def _scored(self, held: Sequence[Held]) -> list[list[Score]]:
        values = self._values([h for h in held if h.said])
        return [self._scores(next(values) if h.said else 0.0, empty=not h.said) for h in held]

    def _values(self, held: Sequence[Held]) -> Any:
        assert self._scorer is not None
        if not held:
            return iter(())
        _, _, f1 = self._scorer.score([h.said for h in held], [list(h.gold) for h in held])
        return iter(f1.tolist())

    def _scores(self, raw: float, *, empty: bool) -> list[Score]:
        values = [raw]
        if self._baseline is not None:
            values.append(0.0 if empty else (raw - self._baseline) / (1 - self._baseline))
        return [
            self._names.number(name, value, self._note)
            for name, value in zip(self._names.names, values, strict=True)
        ]


def baseline_f1(name: str, layer: int) -> float:
    """The F1 of unrelated English sentences under an encoder's layer, from the package's table.

    Raises:
        ValueError: the package has no such table, or no such layer in it.
    """
    folder = package_folder("bert_score")
    path = folder / "rescale_baseline" / "en" / f"{name}.tsv" if folder else None
    if path is None or not path.is_file():
        raise ValueError(f"baseline={name}: bert-score has none of that name")
    with path.open(encoding="utf-8", newline="") as file:
        rows = {int(row["LAYER"]): float(row["F"]) for row in csv.DictReader(file)}
    if layer not in rows:
        raise ValueError(f"layer={layer}: the baseline of {name} has the layers 0 to {max(rows)}")
    return rows[layer]


def _load(checkpoint: Settings, layer: int, device: str) -> Any:
    from bert_score import BERTScorer

    name, revision = source(checkpoint)
    if revision is not None:
        from huggingface_hub import snapshot_download

        name = snapshot_download(name, revision=revision)
    return BERTScorer(model_type=name, num_layers=layer, device=device, batch_size=32)
