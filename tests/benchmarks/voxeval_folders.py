"""Builds data folders in VoxEval's released layout."""

import csv
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.echomind_folders import tone

SUBJECTS = ("virology", "elementary_mathematics")


def rows(subject: str, count: int = 3) -> list[list[str]]:
    return [
        [
            f'Question {n} of {subject}, with "quotes",\nand a line break?',
            "one",
            "two",
            "three",
            "four",
            "ABCD"[n % 4],
        ]
        for n in range(count)
    ]


def write_csv(root: Path, subject: str, content: Sequence[Sequence[str]]) -> None:
    path = root / "test" / f"{subject}_4o.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(content)


def write_pair(folder: Path, number: int, answer: str = "answer", seconds: float = 0.5) -> None:
    """Two files of one number; the content is WAV, which decoders go by."""
    folder.mkdir(parents=True, exist_ok=True)
    pitch = 200 + 7 * number + len(str(folder)) % 50
    (folder / f"{number:08d}_question.mp3").write_bytes(tone(seconds, pitch_hz=pitch))
    (folder / f"{number:08d}_{answer}.mp3").write_bytes(tone(0.3, pitch_hz=pitch + 3))


def released(root: Path, settings: Sequence[str] = ("alloy", "alloy_noise", "echo"), first: int = 0) -> Path:
    """Two subjects of three questions in three settings, five examples a voice and three of CoT."""
    for subject in SUBJECTS:
        write_csv(root, subject, rows(subject))
        for number, setting in enumerate(settings):
            for n in range(3):
                folder = root / "test" / setting / f"{subject}_4o"
                write_pair(folder, n + first, seconds=0.5 + 0.1 * n + 0.01 * number)
        for voice in {s.split("_")[0] for s in settings}:
            for n in range(5):
                write_pair(root / "all_fewshot_examples" / voice / f"{subject}_4o", n)
            if "mathematics" in subject:
                for n in range(3):
                    write_pair(root / "math_CoT_fewshot" / voice / f"{subject}_dev_4o", n, "CoT_answer")
    return root
