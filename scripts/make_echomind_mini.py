"""Makes data/echomind_mini/, a small item set in EchoMind's layout: `python scripts/make_echomind_mini.py`.

Needs the extra `[tts]` and Kokoro's weights (`python scripts/fetch_demo_weights.py --only kokoro`). Sentences, voices
and replies are in data/echomind_mini/recipe.yaml; sounds behind the speech come from background_sounds.py, questions
from echomind_mini_questions.py.

Invariant: nothing but the recipe and the weights goes in. On one machine two runs write the same bytes; another CPU may
round the synthesiser's sums differently, which changes low bits and nothing that is heard.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import wave
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from background_sounds import RATE_HZ, SOUNDS, Samples, chatter
from echomind_mini_questions import questions

from audio import active_rms, resample
from benchmarks.echomind_attributes import ATTRIBUTES
from benchmarks.echomind_scripts import VOICES, Voice
from farm.ids import digest
from farm.types import Failure, Waveform

Speaking = Callable[[str, str, float], Samples]
"""A synthesiser: text, speaker, speed -> speech at RATE_HZ."""

ROOT = Path(__file__).resolve().parents[1]
SPEECH_DBFS = -24.0
"""Level of active speech."""
PEAK = 0.95
PAUSE_S = 0.2
"""Silence before and after plain speech."""
SOUND_PAUSE_S = 0.5
"""The same where a sound is behind it, so that the sound is heard alone for a while."""
FADE_S = 0.05
CROWD = {
    "af_bella": "We were there last summer, and it was much warmer than anyone had expected.",
    "am_puck": "He told me about it on the phone yesterday, but I did not really believe him.",
    "bf_emma": "Could you pass me the menu, please? I would like to see the desserts again.",
    "bm_george": "The second half was better, although the first one had more goals in it.",
    "af_sarah": "My sister moved into the new flat, and now she wants to paint every single wall.",
    "am_michael": "If we take the early bus, we should be back in time for the concert on Sunday.",
    "bf_isabella": "No, not that one, the other restaurant, with the little garden at the back.",
    "am_fenrir": "Three coffees and a tea for the table in the corner, and some water as well.",
}
"""Speaker -> what they say in the crowd, which nobody is meant to make out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """How a recording is stored: real data mixes all of these, even within one script."""

    sample_rate_hz: int = RATE_HZ
    channels: int = 1
    streamed: bool = False
    """Sizes in the header are left at 0xFFFFFFFF, as a program does that writes while it still speaks."""


def speak(weights: Path, text: str, speaker: str, speed: float) -> Samples:
    """Speech by Kokoro at RATE_HZ and SPEECH_DBFS.

    Args:
        weights: Kokoro's folder.
        text: a sentence.
        speaker: a Kokoro voice; `b*` are British.
        speed: above 1 is faster.
    """
    from speech.kokoro import Kokoro

    language = "en-gb" if speaker.startswith("b") else "en-us"
    voice = Kokoro(checkpoint={"path": str(weights)}, voice=speaker, speed=speed, language=language)
    spoken = voice.speak([text])[0]
    if isinstance(spoken, Failure):
        raise ValueError(f"{speaker} cannot speak {text!r}: {spoken.message}")
    level = 10 ** (SPEECH_DBFS / 20) / active_rms(spoken.samples, spoken.sample_rate_hz)
    return np.asarray(resample(spoken, RATE_HZ).samples * level, dtype=np.float64)


def recording(
    script: Mapping[str, Any], voice: Voice, speaking: Speaking, crowd: Sequence[Samples], seed: int
) -> Samples:
    """One script in one voice: speech, and the sound behind it."""
    style = {"speaker": script["speaker"], "speed": 1.0, **script[voice]}
    speech = speaking(script["text"], style["speaker"], style["speed"])
    behind = "sound" in style
    pause = np.zeros(round((SOUND_PAUSE_S if behind else PAUSE_S) * RATE_HZ))
    mix = np.concatenate([pause, speech, pause])
    if behind:
        level = _active(speech) * 10 ** (-style["snr_db"] / 20)
        mix += level * background(style["sound"], len(mix), crowd, np.random.default_rng(seed))
    return np.asarray(mix * min(1.0, PEAK / np.abs(mix).max()), dtype=np.float64)


def background(name: str, frames: int, crowd: Sequence[Samples], rng: np.random.Generator) -> Samples:
    """A sound of this length whose active level is 1, faded in and out."""
    seconds = frames / RATE_HZ
    sound = chatter(seconds, rng, crowd) if name == "chatter" else SOUNDS[name](seconds, rng)
    fade = np.minimum(1.0, np.minimum(np.arange(frames), np.arange(frames)[::-1]) / (FADE_S * RATE_HZ))
    return np.asarray(sound / _active(sound) * fade, dtype=np.float64)


def _active(samples: Samples) -> float:
    return active_rms(samples.astype(np.float32), RATE_HZ)


def wav(samples: Samples, stored: FileFormat) -> bytes:
    """16-bit WAV."""
    mono = resample(
        Waveform(samples=samples.astype(np.float32), sample_rate_hz=RATE_HZ), stored.sample_rate_hz
    )
    channels = np.stack([mono.samples * (1.0 if channel == 0 else 0.8) for channel in range(stored.channels)])
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(stored.channels)
        file.setsampwidth(2)
        file.setframerate(stored.sample_rate_hz)
        file.writeframes(np.rint(np.clip(channels.T, -1, 1) * 32_767).astype("<i2").tobytes())
    data = buffer.getvalue()
    unknown = b"\xff" * 4
    return data[:4] + unknown + data[8:40] + unknown + data[44:] if stored.streamed else data


def file_name(script: Mapping[str, Any], case_id: str, voice: Voice) -> str:
    """`<folder>/<file>` under audio/, as EchoMind names it."""
    label = script["spoken_info"]
    attribute = ATTRIBUTES[label]
    environment = attribute.coarse == "environment"
    folder, name = ("all_env", label) if environment else (attribute.name, attribute.name)
    return f"{folder}/{case_id}_{name}_{script['topic']}_{voice}.wav"


def record(script: Mapping[str, Any], case_id: str) -> dict[str, Any]:
    """A script's entry in script_info_synthesis.json."""
    entry: dict[str, Any] = {
        "case_id": case_id,
        "topic": script["topic"],
        "spoken_info": script["spoken_info"],
        "speak_A": script["text"],
    }
    for voice in VOICES:
        info = entry[f"{voice}_audio_info"] = {}
        if _is_spoken(script, voice):
            info[f"{voice}_input_audio_file"] = file_name(script, case_id, voice)
        if "spoken_info" in script[voice]:
            info[f"{voice}_spoken_info"] = script[voice]["spoken_info"]
        info[f"{voice}_responses"] = script[voice]["responses"]
    return entry


def _is_spoken(script: Mapping[str, Any], voice: Voice) -> bool:
    return voice != "neutral" or ATTRIBUTES[script["spoken_info"]].coarse != "speaker"


def make(recipe: Sequence[Mapping[str, Any]], speaking: Speaking, folder: Path) -> None:
    """Writes `data_synthesis/` anew: recordings, index, questions."""
    shutil.rmtree(folder / "data_synthesis", ignore_errors=True)
    crowd = [speaking(text, speaker, 1.0) for speaker, text in CROWD.items()]
    records = []
    for number, script in enumerate(recipe, start=1):
        case_id = f"id_{number}"
        records.append(record(script, case_id))
        for voice in (voice for voice in VOICES if _is_spoken(script, voice)):
            samples = recording(script, voice, speaking, crowd, int(digest([case_id, voice])[:16], 16))
            path = folder / "data_synthesis" / "audio" / file_name(script, case_id, voice)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wav(samples, FileFormat(**script[voice].get("file", {}))))
            print(f"{len(samples) / RATE_HZ:5.1f} s  {path.relative_to(folder)}")
    _write(folder / "data_synthesis" / "script_info_synthesis.json", records)
    write_questions(recipe, folder)


def write_questions(recipe: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Writes `data_synthesis/MCQ/` anew; needs no weights."""
    files = {
        (number, voice): file_name(script, f"id_{number + 1}", voice)
        for number, script in enumerate(recipe)
        for voice in VOICES
        if _is_spoken(script, voice)
    }
    for level, entries in questions(recipe, files).items():
        _write(folder / "data_synthesis" / "MCQ" / f"{level}.json", entries)


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Reads the command line and makes the set."""
    parser = argparse.ArgumentParser(description="Make the small EchoMind-like item set anew.")
    parser.add_argument("--weights", type=Path, default=ROOT / "weights" / "kokoro", help="Kokoro's folder")
    parser.add_argument("--to", type=Path, default=ROOT / "data" / "echomind_mini")
    parser.add_argument("--questions", action="store_true", help="the questions alone, which need no weights")
    options = parser.parse_args()
    recipe = yaml.safe_load((ROOT / "data" / "echomind_mini" / "recipe.yaml").read_text(encoding="utf-8"))
    if options.questions:
        write_questions(recipe, options.to)
    else:
        make(recipe, partial(speak, options.weights), options.to)


if __name__ == "__main__":
    main()
