"""Conditions of what cheap devices and codecs do: aliasing, few bits, clipping, MP3, a level that moves, lost packets.

Invariant: length and rate stay.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from audio.conditions.draw import Span, check_span, draw, said, transformed
from audio.files import decode_bytes, resample
from farm.types import Waveform

PACKET_S = 0.02
MP3_RATES_HZ = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)


@dataclass(frozen=True, slots=True)
class Aliasing:
    """Fewer samples without a filter before: what is above half of `rate_hz` comes back as other tones."""

    version: ClassVar[str] = "1"
    rate_hz: Span
    """2,000 to 30,000; at or above the file's own rate nothing happens."""

    def __post_init__(self) -> None:
        check_span("rate_hz", self.rate_hz, 2_000, 30_000)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Drops samples and draws lines between those left."""
        from audiomentations import Aliasing as Alias

        rate_hz = min(draw(self.rate_hz, rng), float(waveform.sample_rate_hz))
        drawn = {"rate_hz": said(rate_hz)}
        if rate_hz == waveform.sample_rate_hz:
            return waveform, drawn
        made = Alias(min_sample_rate=round(rate_hz), max_sample_rate=round(rate_hz), p=1.0)
        return replace(waveform, samples=transformed(made, waveform, new_sample_rate=rate_hz)), drawn


@dataclass(frozen=True, slots=True)
class BitCrush:
    """Fewer bits a sample, without dither."""

    version: ClassVar[str] = "1"
    bits: Span
    """2 to 16; a drawn number is rounded."""

    def __post_init__(self) -> None:
        check_span("bits", self.bits, 2, 16)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Rounds every sample."""
        from audiomentations import BitCrush as Crush

        bits = round(draw(self.bits, rng))
        made = Crush(min_bit_depth=bits, max_bit_depth=bits, p=1.0)
        return replace(waveform, samples=transformed(made, waveform, bit_depth=bits)), {"bits": str(bits)}


@dataclass(frozen=True, slots=True)
class Clipping:
    """Cuts the loudest `percent` of the samples off, half of it above and half below."""

    version: ClassVar[str] = "1"
    percent: Span
    """0 to 90."""

    def __post_init__(self) -> None:
        check_span("percent", self.percent, 0, 90)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Clips."""
        percent = draw(self.percent, rng)
        low, high = np.percentile(waveform.samples, [percent / 2, 100 - percent / 2])
        samples = np.clip(waveform.samples, np.float32(low), np.float32(high))
        return replace(waveform, samples=samples), {
            "percent": said(percent),
            "clipped_at": said(max(-low, high)),
        }


@dataclass(frozen=True, slots=True)
class Mp3:
    """Through LAME and back, constant bit rate; rates that MP3 has not go through the next higher one."""

    version: ClassVar[str] = "1"
    kbit_per_s: Span
    """8 to 64; LAME takes the nearest that it has."""

    def __post_init__(self) -> None:
        check_span("kbit_per_s", self.kbit_per_s, 8, 64)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Encodes and decodes."""
        kbit = round(draw(self.kbit_per_s, rng))
        rate = next((r for r in MP3_RATES_HZ if r >= waveform.sample_rate_hz), MP3_RATES_HZ[-1])
        there = resample(waveform, rate)
        back = decode_bytes(_mp3(there, kbit * 1000))
        samples = resample(back, waveform.sample_rate_hz).samples[: len(waveform.samples)]
        missing = len(waveform.samples) - len(samples)
        return replace(waveform, samples=np.pad(samples, (0, missing))), {"kbit_per_s": str(kbit)}


@dataclass(frozen=True, slots=True)
class GainTransition:
    """A level that moves from one gain to another, evenly in dB, from a drawn moment on."""

    version: ClassVar[str] = "1"
    from_db: Span
    to_db: Span
    """-60 to 24, both."""
    over_s: Span
    """0.01 to 60."""

    def __post_init__(self) -> None:
        check_span("from_db", self.from_db, -60, 24)
        check_span("to_db", self.to_db, -60, 24)
        check_span("over_s", self.over_s, 0.01, 60)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Scales the samples."""
        first, last, over_s = draw(self.from_db, rng), draw(self.to_db, rng), draw(self.over_s, rng)
        start_s = draw([0.0, max(0.0, waveform.seconds - over_s)], rng)
        time_s = np.arange(len(waveform.samples)) / waveform.sample_rate_hz
        gain_db = np.interp(time_s, [start_s, start_s + over_s], [first, last])
        samples = (waveform.samples * 10 ** (gain_db / 20)).astype(np.float32)
        values = {"from_db": first, "to_db": last, "over_s": over_s, "start_s": start_s}
        return replace(waveform, samples=samples), {name: said(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class PacketLoss:
    """Packets of 20 ms that never arrive, in bursts (Gilbert's two-state chain, 1960); silence in their place."""

    version: ClassVar[str] = "1"
    percent: Span
    """Of packets lost in the long run, 0 to 60."""
    burst_packets: float = 2.0
    """Mean length of a burst, at least 1."""

    def __post_init__(self) -> None:
        check_span("percent", self.percent, 0, 60)
        check_span("burst_packets", self.burst_packets, 1, 50)

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Drops packets; `lost` is the share that was."""
        percent = draw(self.percent, rng)
        size = round(PACKET_S * waveform.sample_rate_hz)
        packets = -(-len(waveform.samples) // size)
        lost = _lost(packets, percent / 100, self.burst_packets, rng)
        kept = np.repeat(~lost, size)[: len(waveform.samples)]
        values = {"percent": said(percent), "lost": said(float(lost.mean()) if packets else 0.0)}
        return replace(waveform, samples=waveform.samples * kept), values


def _lost(
    packets: int, share: float, burst: float, rng: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which packets are lost: from lost to kept with 1 / burst, from kept to lost so that the share comes out."""
    leave = 1 / burst
    enter = min(1.0, leave * share / (1 - share))
    lost, state = np.zeros(packets, bool), bool(rng.random() < share)
    for index, chance in enumerate(rng.random(packets)):
        lost[index] = state
        state = bool(chance >= leave) if state else bool(chance < enter)
    return lost


def _mp3(waveform: Waveform, bit_rate: int) -> bytes:
    import av

    frame = av.AudioFrame.from_ndarray(
        waveform.samples[None].astype(np.float32), format="fltp", layout="mono"
    )
    frame.sample_rate = waveform.sample_rate_hz
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp3") as file:
        # Each frame by itself: libmpg123 complains of bits that are kept for later frames.
        stream = file.add_stream("libmp3lame", rate=waveform.sample_rate_hz, options={"reservoir": "0"})
        stream.layout, stream.bit_rate = "mono", bit_rate
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            file.mux(packet)
    return buffer.getvalue()
