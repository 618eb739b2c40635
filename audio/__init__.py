"""Waveforms: decode, resample, write, and the conditions that degrade them."""

from audio import conditions
from audio.activity import active_rms
from audio.files import decode, encode_flac, encode_stereo_flac, encode_wav, load, resample
from audio.hear import hear
from audio.probe import Probe, probe, probe_many

__all__ = [
    "Probe",
    "active_rms",
    "conditions",
    "decode",
    "encode_flac",
    "encode_stereo_flac",
    "encode_wav",
    "hear",
    "load",
    "probe",
    "probe_many",
    "resample",
]
