"""Decoding whatever a data set holds: true lengths, odd headers, every reason for a refusal."""

import io
import os
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

import audio
from farm.types import Waveform
from tests.audio.signals import frequency_hz, tone, wav_bytes, write

TONE = tone(440, 1.5, 24_000)
STREAMED = 0xFFFFFFFF
LIST = struct.pack("<4sI", b"LIST", 10) + b"INFOsixsix"


def ffmpeg_bytes(format_name: str, codec: str, sample_rate_hz: int) -> bytes:
    file = io.BytesIO()
    pcm = (tone(440, 1.5, sample_rate_hz).samples * 32_767).astype(np.int16)[None]
    with av.open(file, "w", format=format_name) as container:
        stream = container.add_stream(codec, rate=sample_rate_hz, layout="mono")
        frame = av.AudioFrame.from_ndarray(pcm, format="s16", layout="mono")
        frame.sample_rate = sample_rate_hz
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    return file.getvalue()


@pytest.mark.parametrize(
    ("riff", "size", "before"),
    [
        (STREAMED, STREAMED, b""),
        (STREAMED, STREAMED, LIST),
        (0x7FFFFFFF, 0x7FFFFFFF - 36, b""),
        (0, 0, b""),
        (0, 0, LIST),
        (1_036, 1_000, b""),
        (None, 10_000_000, b""),
    ],
)
def test_a_wavs_length_is_what_is_there_whatever_its_header_says(
    tmp_path: Path, riff: int | None, size: int, before: bytes
) -> None:
    waveform = audio.load(write(tmp_path / "a.wav", wav_bytes(TONE.samples, riff, size, before)))
    assert waveform.sample_rate_hz == 24_000
    assert len(waveform.samples) == 36_000
    np.testing.assert_allclose(waveform.samples, TONE.samples, atol=1e-4)


def test_a_chunk_after_the_audio_is_not_heard() -> None:
    assert len(audio.decode(wav_bytes(TONE.samples) + LIST, "a.wav").samples) == 36_000


def test_a_published_clip_with_a_streamed_header_has_its_true_length() -> None:
    folder = os.environ.get("ECHOMIND_SAMPLES")
    if not folder:
        pytest.skip("ECHOMIND_SAMPLES is not set: it names the folder of EchoMind's demo clip")
    waveform = audio.load(Path(folder) / "id_854_sad_school_target.wav")
    assert waveform.seconds == 3.15
    assert 0.1 < np.abs(waveform.samples).max() < 0.2


def test_channels_are_averaged_and_the_rate_is_kept(tmp_path: Path) -> None:
    left, right = tone(440, 1, 48_000).samples, tone(1_000, 1, 48_000).samples
    soundfile.write(tmp_path / "a.wav", np.stack([left, right], axis=1), 48_000, subtype="FLOAT")
    waveform = audio.load(tmp_path / "a.wav")
    assert (waveform.sample_rate_hz, waveform.samples.shape, waveform.samples.dtype) == (
        48_000,
        (48_000,),
        np.float32,
    )
    np.testing.assert_allclose(waveform.samples, (left + right) / 2, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("u.wav", {"subtype": "ULAW"}),
        ("a.mp3", {}),
        ("a.ogg", {}),
        ("a.flac", {}),
        ("a.au", {}),
        ("p24.wav", {"subtype": "PCM_24"}),
    ],
)
def test_libsndfiles_formats_are_read_whole(tmp_path: Path, name: str, options: dict[str, str]) -> None:
    soundfile.write(tmp_path / name, tone(440, 1.5, 8_000).samples, 8_000, **options)
    waveform = audio.load(tmp_path / name)
    assert waveform.seconds == pytest.approx(1.5, abs=0.01)
    assert frequency_hz(waveform) == pytest.approx(440, abs=1)


@pytest.mark.parametrize(
    ("format_name", "codec", "sample_rate_hz"),
    [("mp4", "aac", 24_000), ("adts", "aac", 44_100), ("webm", "libopus", 48_000)],
)
def test_what_libsndfile_lacks_is_read_by_ffmpeg(format_name: str, codec: str, sample_rate_hz: int) -> None:
    waveform = audio.decode(ffmpeg_bytes(format_name, codec, sample_rate_hz), "a")
    assert waveform.sample_rate_hz == sample_rate_hz
    assert waveform.seconds == pytest.approx(1.5, abs=0.1)  # an encoder pads to whole packets
    assert frequency_hz(waveform) == pytest.approx(440, abs=1)


def test_a_flac_that_does_not_know_its_length_is_read_whole() -> None:
    data = bytearray(audio.encode_flac(TONE))
    data[21] &= 0xF0  # STREAMINFO's total samples: 36 bits, 0 is "unknown"
    data[22:26] = bytes(4)
    assert len(audio.decode(bytes(data), "a.flac").samples) == 36_000


def test_a_pcm_file_that_was_cut_short_is_as_long_as_what_is_left() -> None:
    whole = wav_bytes(TONE.samples)
    waveform = audio.decode(whole[: 44 + 20_001], "a.wav")
    np.testing.assert_allclose(waveform.samples, TONE.samples[:10_000], atol=1e-4)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("empty.wav", b"", "empty file"),
        ("text.wav", b"this is no audio\n" * 50, "cannot be decoded"),
        ("noise.wav", np.random.default_rng(0).bytes(5_000), "cannot be decoded"),
        ("header.wav", wav_bytes(TONE.samples[:0]), "no samples"),
        ("half a header.wav", wav_bytes(TONE.samples)[:30], "cannot be decoded"),
        ("cut.flac", audio.encode_flac(TONE)[:6_000], "cannot be decoded"),
        ("cut.m4a", ffmpeg_bytes("mp4", "aac", 24_000)[:4_000], "cannot be decoded"),
    ],
)
def test_a_bad_file_is_a_value_error_with_path_and_reason(
    tmp_path: Path, name: str, data: bytes, reason: str
) -> None:
    path = write(tmp_path / name, data)
    with pytest.raises(ValueError) as caught:
        audio.load(path)
    assert str(caught.value).startswith(f"{path}: {reason}")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_samples_that_are_not_finite_are_refused(tmp_path: Path, bad: float) -> None:
    samples = TONE.samples.copy()
    samples[7] = bad
    soundfile.write(tmp_path / "a.wav", samples, 24_000, subtype="FLOAT")
    with pytest.raises(ValueError, match=r"a\.wav: samples that are not finite"):
        audio.load(tmp_path / "a.wav")


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"gone\.wav: no such file"):
        audio.load(tmp_path / "gone.wav")
    with pytest.raises(ValueError, match="Is a directory"):
        audio.load(tmp_path)


def test_decoding_in_threads_gives_what_decoding_alone_gives() -> None:
    data = [audio.encode_flac(tone(200 + 50 * n, 0.5)) for n in range(24)]
    alone = [audio.decode(d, "a").samples for d in data]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda d: audio.decode(d, "a").samples, data))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


@pytest.mark.parametrize("sample_rate_hz", [8_000, 16_000, 44_100])
def test_resampling_keeps_length_pitch_and_level(sample_rate_hz: int) -> None:
    waveform = audio.resample(TONE, sample_rate_hz)
    assert waveform.seconds == pytest.approx(TONE.seconds, abs=1e-3)
    assert waveform.samples.dtype == np.float32
    assert frequency_hz(waveform) == pytest.approx(440, abs=0.1)
    assert waveform.samples.std() == pytest.approx(TONE.samples.std(), rel=0.01)


def test_resampling_to_the_same_rate_does_nothing() -> None:
    assert audio.resample(TONE, 24_000) is TONE


def test_flac_keeps_samples_to_one_step_of_16_bit() -> None:
    back = audio.decode(audio.encode_flac(TONE), "a.flac")
    assert back.sample_rate_hz == 24_000
    np.testing.assert_allclose(back.samples, TONE.samples, atol=1 / 32_768)


def test_flac_beyond_full_scale_is_scaled_not_clipped_and_says_so() -> None:
    loud = Waveform(samples=TONE.samples * 20, sample_rate_hz=24_000)
    data = audio.encode_flac(loud)
    np.testing.assert_allclose(audio.decode(data, "a").samples, loud.samples / 2, atol=1e-4)
    assert soundfile.SoundFile(io.BytesIO(data)).comment == "scaled to full scale from peak 2"
    assert soundfile.SoundFile(io.BytesIO(audio.encode_flac(TONE))).comment == ""


@pytest.mark.parametrize("samples", [[], [0.1, float("nan")]])
def test_flac_of_nothing_or_of_no_numbers_is_refused(samples: list[float]) -> None:
    with pytest.raises(ValueError, match="samples"):
        audio.encode_flac(Waveform(samples=np.array(samples, np.float32), sample_rate_hz=16_000))
