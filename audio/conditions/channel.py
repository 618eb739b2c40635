"""Conditions of the channel that speech comes through: the telephone."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from audio.files import resample
from farm.types import Waveform

TELEPHONE_RATE_HZ = 8_000
TELEPHONE_BAND_HZ = (300.0, 3_400.0)
FILTER_ORDER = 8


@dataclass(frozen=True, slots=True)
class TelephoneBand:
    """A narrow-band telephone line: 8 kHz, 300 to 3,400 Hz, 8 bit mu-law (ITU-T G.711); rate and length are kept.

    The band is a Butterworth filter run forth and back (no delay): 6 dB down at both edges, over 30 dB at 200 Hz and
    at 3.8 kHz.
    """

    version: ClassVar[str] = "1"

    def __call__(self, waveform: Waveform, rng: np.random.Generator) -> tuple[Waveform, dict[str, str]]:
        """Sends the waveform through the line; nothing is drawn.

        Raises:
            ValueError: shorter than one sample of the line.
        """
        line = resample(waveform, TELEPHONE_RATE_HZ)
        if not len(line.samples):
            raise ValueError("too short for this condition")
        narrow = Waveform(samples=_mu_law(_band(line.samples)), sample_rate_hz=TELEPHONE_RATE_HZ)
        back = resample(narrow, waveform.sample_rate_hz).samples
        missing = max(0, len(waveform.samples) - len(back))
        samples = np.pad(back, (0, missing))[: len(waveform.samples)]
        return replace(waveform, samples=samples), {}


def _band(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    from scipy.signal import butter, sosfiltfilt

    sos = butter(FILTER_ORDER, TELEPHONE_BAND_HZ, "bandpass", fs=TELEPHONE_RATE_HZ, output="sos")
    padding = min(3 * (2 * len(sos) + 1), len(samples) - 1)
    return np.asarray(sosfiltfilt(sos, samples, padlen=padding), np.float32)


def _mu_law(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """What G.711 makes of them, by libsndfile's own tables."""
    import soundfile

    line = io.BytesIO()
    form = {"format": "RAW", "subtype": "ULAW"}
    soundfile.write(line, samples, TELEPHONE_RATE_HZ, **form)
    line.seek(0)
    heard, _ = soundfile.read(line, dtype="float32", samplerate=TELEPHONE_RATE_HZ, channels=1, **form)
    return np.asarray(heard, np.float32)
