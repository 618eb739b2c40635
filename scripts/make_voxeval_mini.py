"""Makes data/voxeval_mini/, a small item set in VoxEval's layout: `python scripts/make_voxeval_mini.py`.

Needs the extra `[tts]` and both voices' weights (`python scripts/fetch_demo_weights.py --only piper-joe kokoro`).
Questions and examples are in data/voxeval_mini/recipe.yaml; mathematics is written out as it is said.

Invariant: nothing but the recipe and the weights goes in. On one machine two runs write the same bytes; another CPU may
round the synthesiser's sums differently, which changes low bits and nothing that is heard.
"""

from __future__ import annotations

import argparse
import csv
import io
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from audio import active_rms
from benchmarks.voxeval_layout import COT_PROMPT, LETTERS
from benchmarks.voxeval_prompts import question_text
from farm.types import Failure, Waveform
from speech.mathematics import words
from speech.types import Synthesiser

Speaking = Callable[[str], Waveform]
"""A synthesiser: text -> speech."""

ROOT = Path(__file__).resolve().parents[1]
SPEECH_DBFS = -24.0
"""Level of active speech."""
PAUSE_S = 0.15
"""Silence before and after speech."""
MP3_BIT_RATE = 24_000
MP3_OPTIONS = {"reservoir": "0"}
"""Each frame by itself: libmpg123, which seeks in a file when it opens it, complains of bits kept for later frames."""
STEP_BY_STEP = "Please explain your reasoning step by step."


@dataclass(frozen=True, slots=True)
class Spoken:
    """One file of the set and what is said in it."""

    path: str
    text: str


def answer_text(letter: str, option: str) -> str:
    """What a right answer says."""
    return f"The correct answer is {letter}. {words(option)}."


def question(row: Mapping[str, Any]) -> str:
    """What a question says."""
    return question_text(words(row["q"]), [words(option) for option in row["o"]])


def spoken(recipe: Mapping[str, Any], voice: str) -> Iterator[Spoken]:
    """Every file of one voice."""
    for subject, parts in recipe.items():
        for number, row in enumerate(parts["questions"]):
            yield from _pair(f"test/{voice}/{subject}_4o/{number:08d}", row)
        for number, row in enumerate(parts["fewshot"]):
            yield from _pair(f"all_fewshot_examples/{voice}/{subject}_4o/{number:08d}", row)
            if "reasoning" in row:
                stem = f"math_CoT_fewshot/{voice}/{subject}_dev_4o/{number:08d}"
                yield Spoken(f"{stem}_question.mp3", f"{STEP_BY_STEP} {question(row)}")
                yield Spoken(
                    f"{stem}_CoT_answer.mp3", f"{row['reasoning']} {answer_text(row['a'], _right(row))}"
                )
    yield Spoken(f"math_CoT_fewshot/{voice}/{COT_PROMPT}", STEP_BY_STEP)


def _pair(stem: str, row: Mapping[str, Any]) -> Iterator[Spoken]:
    yield Spoken(f"{stem}_question.mp3", question(row))
    yield Spoken(f"{stem}_answer.mp3", answer_text(row["a"], _right(row)))


def _right(row: Mapping[str, Any]) -> str:
    return str(row["o"][LETTERS.index(row["a"])])


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """A subject's CSV: question, four options, right letter; no header."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([row["q"], *row["o"], row["a"]] for row in rows)
    return buffer.getvalue()


def mp3(speech: Waveform) -> bytes:
    """Speech at SPEECH_DBFS between pauses, at its own rate."""
    import av

    level = 10 ** (SPEECH_DBFS / 20) / active_rms(speech.samples, speech.sample_rate_hz)
    pause = np.zeros(round(PAUSE_S * speech.sample_rate_hz), np.float32)
    samples = np.concatenate([pause, speech.samples * np.float32(level), pause]).clip(-1, 1)
    frame = av.AudioFrame.from_ndarray(samples[None].astype(np.float32), format="fltp", layout="mono")
    frame.sample_rate = speech.sample_rate_hz
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp3") as file:
        stream = file.add_stream("libmp3lame", rate=speech.sample_rate_hz, options=MP3_OPTIONS)
        stream.layout, stream.bit_rate = "mono", MP3_BIT_RATE
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            file.mux(packet)
    return buffer.getvalue()


def make(recipe: Mapping[str, Any], voices: Mapping[str, Speaking], folder: Path) -> None:
    """Writes `test/`, `all_fewshot_examples/` and `math_CoT_fewshot/` anew."""
    for part in ("test", "all_fewshot_examples", "math_CoT_fewshot"):
        shutil.rmtree(folder / part, ignore_errors=True)
    for voice, speak in voices.items():
        for file in spoken(recipe, voice):
            path = folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(mp3(speak(file.text)))
            print(path.relative_to(folder))
    for subject, parts in recipe.items():
        path = folder / "test" / f"{subject}_4o.csv"
        path.write_text(csv_text(parts["questions"]), encoding="utf-8")


def piper(weights: Path) -> Speaking:
    """The voice `joe`."""
    from speech.piper import Piper

    return _speaking(Piper(checkpoint={"path": str(weights / "piper-joe")}))


def kokoro(weights: Path) -> Speaking:
    """The voice `heart`."""
    from speech.kokoro import Kokoro

    return _speaking(Kokoro(checkpoint={"path": str(weights / "kokoro")}, voice="af_heart", language="en-us"))


def _speaking(synthesiser: Synthesiser) -> Speaking:
    def speak(text: str) -> Waveform:
        (made,) = synthesiser.speak([text])
        if isinstance(made, Failure):
            raise ValueError(f"cannot speak {text!r}: {made.message}")
        return made

    return speak


def main() -> None:
    """Reads the command line and makes the set."""
    parser = argparse.ArgumentParser(description="Make the small VoxEval-like item set anew.")
    parser.add_argument(
        "--weights", type=Path, default=ROOT / "weights", help="folder of both voices' weights"
    )
    parser.add_argument("--to", type=Path, default=ROOT / "data" / "voxeval_mini")
    options = parser.parse_args()
    recipe = yaml.safe_load((ROOT / "data" / "voxeval_mini" / "recipe.yaml").read_text(encoding="utf-8"))
    make(recipe, {"joe": piper(options.weights), "heart": kokoro(options.weights)}, options.to)


if __name__ == "__main__":
    main()
