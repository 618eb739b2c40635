"""What we do to input audio: small classes that a condition's YAML chains, each with a `version`.

A new one: a class here (a `version`, parameters checked when it is made, `__call__(waveform, rng)` that draws from
`rng` alone and returns what it drew) and a YAML in conf/condition/ that is named in all.yaml too.
"""

from audio.conditions.chain import Step, apply, build
from audio.conditions.channel import TelephoneBand
from audio.conditions.damage import Aliasing, BitCrush, Clipping, GainTransition, Mp3, PacketLoss
from audio.conditions.filters import BandPass, BandStop, HighPass, HighShelf, LowPass, LowShelf
from audio.conditions.level import Gain, WhiteNoise
from audio.conditions.noise import AmplitudeNoise, BackgroundSound, ColorNoise, ShortSounds
from audio.conditions.pace import PitchShift, Speed
from audio.conditions.room import AirAbsorption, Reverberation

__all__ = [
    "AirAbsorption",
    "Aliasing",
    "AmplitudeNoise",
    "BackgroundSound",
    "BandPass",
    "BandStop",
    "BitCrush",
    "Clipping",
    "ColorNoise",
    "Gain",
    "GainTransition",
    "HighPass",
    "HighShelf",
    "LowPass",
    "LowShelf",
    "Mp3",
    "PacketLoss",
    "PitchShift",
    "Reverberation",
    "ShortSounds",
    "Speed",
    "Step",
    "TelephoneBand",
    "WhiteNoise",
    "apply",
    "build",
]
