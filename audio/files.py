"""Audio files and bytes: decode whatever a data set holds, resample, write FLAC.

Invariant: a waveform's length is what was decoded, never what a header says: WAV sizes that a streaming writer left at
0xFFFFFFFF, at 0 or too short are put right first, and a header's frame count never sizes a buffer.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt

from farm.types import Waveform

BLOCK_FRAMES = 1 << 16

_Frames = tuple[npt.NDArray[np.float32], int]
"""Samples of shape (frames, channels) and their rate in Hz."""


def load(path: str | Path) -> Waveform:
    """Decodes an audio file: WAV, FLAC, MP3, Ogg and what else libsndfile reads, else (M4A, AAC, WebM) with FFmpeg.

    Returns:
        Mono (channels are averaged), float32, at the file's own rate.

    Raises:
        ValueError: `<path>: <reason>`: missing, empty, not audio, damaged, without samples, or not finite. A PCM file
            that was cut short is as long as what is left of it.
    """
    return decode(read(path), str(path))


def decode(data: bytes, name: str) -> Waveform:
    """Decodes the bytes of an audio file, as `load` does.

    Args:
        data: a whole file's bytes.
        name: what an error calls them.

    Raises:
        ValueError: `<name>: <reason>`.
    """
    try:
        return decode_bytes(data)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def read(path: str | Path) -> bytes:
    """A file's bytes.

    Raises:
        ValueError: `<path>: <reason>` where it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise ValueError(f"{path}: no such file") from error
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error


def decode_bytes(data: bytes) -> Waveform:
    """`decode` whose errors are the bare reason.

    Raises:
        ValueError: `<reason>`.
    """
    if not data:
        raise ValueError("empty file")
    frames, sample_rate_hz = _decoded(_with_true_sizes(data))
    if not len(frames):
        raise ValueError("no samples")
    mono = frames[:, 0] if frames.shape[1] == 1 else frames.mean(axis=1, dtype=np.float32)
    if not np.isfinite(mono).all():
        raise ValueError("samples that are not finite numbers")
    return Waveform(samples=np.ascontiguousarray(mono), sample_rate_hz=sample_rate_hz)


def resample(waveform: Waveform, sample_rate_hz: int) -> Waveform:
    """The waveform at another rate (soxr, high quality, linear phase); itself where the rate is right already."""
    if waveform.sample_rate_hz == sample_rate_hz:
        return waveform
    import soxr

    samples = soxr.resample(waveform.samples, waveform.sample_rate_hz, sample_rate_hz, quality="HQ")
    return Waveform(samples=samples, sample_rate_hz=sample_rate_hz)


def encode_flac(waveform: Waveform) -> bytes:
    """The waveform as a 16 bit FLAC file.

    Levels are kept. A waveform beyond full scale is scaled down as a whole until its peak is full scale, so that its
    shape is kept and nothing is clipped; the file's comment then names the peak that it had.

    Raises:
        ValueError: no samples, or not finite ones.
    """
    return _flac(waveform.samples, waveform.sample_rate_hz)


def encode_stereo_flac(left: Waveform, right: Waveform) -> bytes:
    """Two waveforms of one rate and length as one file, in sync; levels as `encode_flac`. Raises as it does."""
    assert left.sample_rate_hz == right.sample_rate_hz and len(left.samples) == len(right.samples)
    return _flac(np.stack([left.samples, right.samples], axis=1), left.sample_rate_hz)


def _flac(samples: npt.NDArray[np.float32], sample_rate_hz: int) -> bytes:
    """Samples of shape (frames,) or (frames, channels)."""
    import soundfile

    if not len(samples):
        raise ValueError("no samples to encode")
    peak = float(np.abs(samples).max())
    if not np.isfinite(peak):
        raise ValueError("samples that are not finite numbers")
    channels = 1 if samples.ndim == 1 else samples.shape[1]
    file = io.BytesIO()
    with soundfile.SoundFile(
        file, "w", sample_rate_hz, channels=channels, format="FLAC", subtype="PCM_16"
    ) as flac:
        if peak > 1:
            flac.comment = f"scaled to full scale from peak {peak:.6g}"
            samples = samples / np.float32(peak)
        flac.write(samples)
    return file.getvalue()


def encode_wav(waveform: Waveform) -> bytes:
    """The waveform as a 16 bit WAV file: a 16 bit recording bit for bit; what is beyond full scale is clipped."""
    import soundfile

    # Rounded here: libsndfile scales by 32767, which would change the samples of a 16 bit recording.
    scaled = np.rint(waveform.samples * np.float32(32768)).clip(-32768, 32767).astype(np.int16)
    file = io.BytesIO()
    soundfile.write(file, scaled, waveform.sample_rate_hz, format="WAV", subtype="PCM_16")
    return file.getvalue()


def _decoded(data: bytes) -> _Frames:
    """By libsndfile; by FFmpeg what libsndfile does not know, cannot finish or finds empty."""
    import soundfile

    try:
        frames, sample_rate_hz = _with_libsndfile(data)
        if len(frames):
            return frames, sample_rate_hz
        reason = "no samples"
    except soundfile.LibsndfileError as error:
        reason = f"cannot be decoded ({error.error_string.rstrip('.')})"
    found = _with_ffmpeg(data)
    if found is None:
        raise ValueError(reason)
    return found


def _with_libsndfile(data: bytes) -> _Frames:
    import soundfile

    blocks: list[npt.NDArray[np.float32]] = []
    with soundfile.SoundFile(io.BytesIO(data)) as file:
        while not blocks or len(blocks[-1]) == BLOCK_FRAMES:
            blocks.append(file.read(BLOCK_FRAMES, dtype="float32", always_2d=True))
        return np.concatenate(blocks), int(file.samplerate)


def _with_ffmpeg(data: bytes) -> _Frames | None:
    """None where FFmpeg finds no audio in it either, or stops in the middle."""
    import av

    blocks: list[npt.NDArray[np.float32]] = []
    try:
        with av.open(io.BytesIO(data)) as container:
            if not container.streams.audio:
                return None
            planar = av.AudioResampler(format="fltp")
            for decoded in container.decode(container.streams.audio[0]):
                blocks += [frame.to_ndarray() for frame in planar.resample(decoded)]
            sample_rate_hz = int(container.streams.audio[0].rate)
    except (av.FFmpegError, ValueError):  # ValueError: the format changes in the middle
        return None
    return (np.concatenate(blocks, axis=1).T, sample_rate_hz) if blocks else None


def _with_true_sizes(data: bytes) -> bytes:
    """A WAV whose sizes say how much there is; other bytes as they are."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return data
    at = 12
    while data[at : at + 4] != b"data":
        if at + 8 > len(data):
            return data
        at = _next_chunk(data, at)
    end = _next_chunk(data, at)
    if end == len(data) or _is_chunk(data, end):
        return data
    start = at + 8
    sizes = [(len(data) - 8).to_bytes(4, "little"), (len(data) - start).to_bytes(4, "little")]
    return b"".join([data[:4], sizes[0], data[8 : at + 4], sizes[1], data[start:]])


def _next_chunk(data: bytes, at: int) -> int:
    size = int.from_bytes(data[at + 4 : at + 8], "little")
    return at + 8 + size + size % 2


def _is_chunk(data: bytes, at: int) -> bool:
    """Whether what stands there reads as a RIFF chunk: a printable name and a size that the file has."""
    name = data[at : at + 4]
    return len(name) == 4 and all(32 <= c < 127 for c in name) and _next_chunk(data, at) <= len(data) + 1
