"""How many right answers of VoxEval survive recogniser and parser: `python scripts/voxeval_ceiling.py [key=value ...]`.

The released right answers' own speech is scored as a model's replies would be: what is lost here is the scorer's, not a
model's. Settings are those of a sweep: `benchmark.path=/data/VoxEval 'setting=[alloy]' limit=200
'scorer=[voxeval_speech]'`; as it stands, the small set and Whisper tiny.en.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import audio
from farm.types import Item, Reply, Score, Scorer, ScorerSpec
from jobs import config

DEFAULTS = ("experiment=voxeval_mini", "condition=[clean]", "limit=null", "scorer=[voxeval_speech_tiny]")
BATCH = 16


def answers(items: Iterable[Item]) -> Iterator[tuple[Item, Reply]]:
    """Each item with its right answer, spoken, as a model's reply.

    Raises:
        ValueError: an item has no spoken answer, or one that cannot be decoded.
    """
    for item in items:
        if "answer_speech" not in item.gold:
            raise ValueError(f"{item.key}: the data has no spoken answer")
        yield item, Reply(speech=audio.load(item.gold["answer_speech"]))


def rates(scorer: Scorer, heard: Iterator[tuple[Item, Reply]]) -> Mapping[str, float]:
    """Metric -> its mean over all answers, those without a value counted as 0."""
    found: dict[str, list[float]] = {}
    while batch := list(islice(heard, BATCH)):
        for scores in scorer.score(batch):
            for score in scores:
                _refuse(score)
                found.setdefault(score.name, []).append(score.value or 0.0)
    return {name: sum(values) / len(values) for name, values in found.items()}


def _refuse(score: Score) -> None:
    if score.status == "unavailable":
        raise ValueError(f"{score.name}: {score.reason}")


def main(arguments: Sequence[str]) -> None:
    """Composes the sweep, scores its right answers, prints a line a metric."""
    from hydra import compose, initialize_config_dir

    config.register_resolvers()
    with initialize_config_dir(str(config.ROOT / "conf"), version_base="1.3"):
        sweep = config.sweep(compose("sweep", overrides=[*DEFAULTS, *arguments]))
    for spec in (spec for spec in sweep.scorers if spec.needs == "speech"):
        for task in sweep.tasks:
            items = islice(task.items(), sweep.limit)
            for name, value in rates(_made(spec), answers(items)).items():
                print(f"{task.name}  {name:32}  {value:.4f}")


def _made(spec: ScorerSpec) -> Scorer:
    from hydra.utils import instantiate

    scorer: Scorer = instantiate(dict(spec.scorer), _convert_="all")
    return scorer


if __name__ == "__main__":
    main(sys.argv[1:])
