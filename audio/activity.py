"""Where speech is active in a waveform, by energy: what an SNR is measured against, and what tells silence.

Invariant: padding a recording with silence, or scaling it, changes neither the decision nor the level beyond the scale.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FRAME_S = 0.02
SILENCE_DBFS = -80.0
"""Frames below this are silence whatever surrounds them: about three steps of 16 bit."""
ACTIVE_RANGE_DB = 25.0
"""How far below the typical loud frame speech is still active; pauses and room tone of clean speech lie lower."""


def active_rms(samples: npt.NDArray[np.float32], sample_rate_hz: int) -> float:
    """RMS over active speech, so that a signal-to-noise ratio is against speech and not against its pauses.

    Frames of 20 ms (mean removed) are active within 25 dB of the energy-weighted mean frame power (the power that the
    energy lies at: silence around the speech does not move it, as it would a mean or a percentile) and above -80 dBFS.
    In intent the active level of ITU-T P.56, without its hangover of 200 ms, which counts silence after each phrase.

    Args:
        samples: shape (frames,), full scale 1.0.
        sample_rate_hz: their rate.

    Returns:
        Linear RMS, > 0.

    Raises:
        ValueError: "no active speech", where no frame is above -80 dBFS.
    """
    if not len(samples):
        raise ValueError("no active speech")
    centred = samples.astype(np.float64) - samples.mean(dtype=np.float64)
    starts = np.arange(0, len(samples), max(1, round(FRAME_S * sample_rate_hz)))
    energy = np.add.reduceat(centred**2, starts)
    lengths = np.diff(starts, append=len(samples))
    power = energy / lengths
    loud = (energy @ power) / max(energy.sum(), np.finfo(float).tiny)
    active = power > max(10 ** (SILENCE_DBFS / 10), loud * 10 ** (-ACTIVE_RANGE_DB / 10))
    if not active.any():
        raise ValueError("no active speech")
    return float(np.sqrt(energy[active].sum() / lengths[active].sum()))
