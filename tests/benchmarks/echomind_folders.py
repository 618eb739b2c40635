"""Builds data folders in EchoMind's layout, as untidy as the real one."""

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
