"""Builds data folders in EchoMind's layout, as untidy as the real one."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np


def tone(
    seconds: float, rate_hz: int = 24_000, channels: int = 1, streamed: bool = False, pitch_hz: float = 220
) -> bytes:
    """A 16-bit WAV; `streamed` leaves both sizes at 0xFFFFFFFF."""
    time_s = np.arange(round(seconds * rate_hz)) / rate_hz
    samples = np.rint(8_000 * np.sin(2 * np.pi * pitch_hz * time_s)).astype("<i2")
    body = np.repeat(samples, channels).tobytes()
    riff, data = (0xFFFFFFFF, 0xFFFFFFFF) if streamed else (36 + len(body), len(body))
    shape = struct.pack("<HHIIHH", 1, channels, rate_hz, rate_hz * channels * 2, channels * 2, 16)
    head = b"RIFF" + struct.pack("<I", riff) + b"WAVEfmt " + struct.pack("<I", 16) + shape
    return head + b"data" + struct.pack("<I", data) + body


def script(
    case_id: str | int, spoken_info: str, name: str, topic: str = "school", **more: Any
) -> dict[str, Any]:
    """A script with all three voices; `name` is what its files' names carry after the id."""
    folder = "all_env" if spoken_info.startswith("sound of") else name
    record = {"case_id": case_id, "topic": topic, "spoken_info": spoken_info, **more}
    for voice in ("target", "alternative", "neutral"):
        file = f"{folder}/{case_id}_{name}_{topic}_{voice}.wav"
        record[f"{voice}_audio_info"] = {f"{voice}_input_audio_file": file}
    return record


def write_index(root: Path, source: str, scripts: object) -> None:
    """`data_<source>/script_info_<source>.json`."""
    folder = root / f"data_{source}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"script_info_{source}.json").write_text(json.dumps(scripts), encoding="utf-8")


def write_audio(root: Path, source: str, file: str, content: bytes) -> Path:
    """One recording under `data_<source>/audio/`."""
    path = root / f"data_{source}" / "audio" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def write_source(root: Path, source: str, scripts: list[dict[str, Any]]) -> None:
    """Index and recordings; the neutral voice of speaker scripts is left out, as upstream."""
    write_index(root, source, scripts)
    for number, record in enumerate(scripts):
        for voice in ("target", "alternative", "neutral"):
            if voice == "neutral" and record["spoken_info"] in (
                "male",
                "female",
                "child",
                "adult",
                "elderly",
            ):
                continue
            file = record[f"{voice}_audio_info"][f"{voice}_input_audio_file"]
            write_audio(root, source, file, tone(0.5 + 0.1 * number, pitch_hz=200 + 10 * number))


def question(
    number: int, record: dict[str, Any], voice: str = "target", *, options: str = "A. Yes\nB. No", **more: Any
) -> dict[str, Any]:
    """A multiple-choice question about one recording of a script; its right answer is A, or what `more` says."""
    folder, _, name = record[f"{voice}_audio_info"][f"{voice}_input_audio_file"].rpartition("/")
    fields = {
        "question_id": number,
        "question": "Does the audio contain sounds from multiple people?",
        "options_text": options,
        "audio_dir": folder,
        "audio_name": name,
        "answer": "A",
    }
    return {**fields, **more}


def write_questions(root: Path, source: str, level: str, questions: object) -> None:
    """`data_<source>/MCQ/<level>.json`."""
    folder = root / f"data_{source}" / "MCQ"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{level}.json").write_text(json.dumps(questions), encoding="utf-8")


def official(root: Path) -> list[dict[str, Any]]:
    """A whole folder as the released one is: both sources, every oddity of names, rates, channels and headers.

    Returns:
        Its scripts.
    """
    scripts = [
        script("id_854", "sad-toned expressive voice", "sad", speak_A="I got my exam back."),
        script("id_355", "elderly", "elderly", "family", speak_A="My phone rings all day."),
        script("id_2471", "breathless sound / gasping sound / heavy breathing sound", "breath", "sports"),
        script("id_2500", "sound of crowd's chatter", "sound of crowd's chatter", "no_specific_topics"),
        script("id_2600", "sound of dog(s) barking", "sound of dog(s) barking", "no_specific_topics"),
    ]
    write_source(root, "synthesis", scripts)
    write_source(root, "human", scripts[:2])
    odd: list[dict[str, Any]] = [
        {"streamed": True},
        {"rate_hz": 48_000, "channels": 2, "streamed": True},
        {"rate_hz": 44_100, "channels": 2},
    ]
    for voice, how in zip(("target", "alternative", "neutral"), odd, strict=True):
        write_audio(
            root,
            "synthesis",
            scripts[2][f"{voice}_audio_info"][f"{voice}_input_audio_file"],
            tone(1.0, **how),
        )
    four = (
        "A. The speaker's voice shows surprise.\nB. The speaker's voice shows sadness.\nC. fear\nD. disgust"
    )
    three = "A. The speaker is an adult.\nB. The speaker is a child.\nC. The speaker is elderly."
    emotion = "What is the most likely emotion of the speaker in the audio?"
    age = "What is the most likely age group of the speaker in the audio?"
    for source, own in (("synthesis", scripts), ("human", scripts[:2])):
        understanding = [
            question(1, own[0], options=four, question=emotion, answer="B"),
            question(2, own[0], "alternative", options=four, question=emotion, answer="A"),
            question(3, own[1], options=three, question=age, answer="C"),
        ]
        write_questions(root, source, "understanding", understanding)
        write_questions(root, source, "reasoning", [question(n, record) for n, record in enumerate(own)])
    (root / "audio_response").mkdir()
    return scripts
