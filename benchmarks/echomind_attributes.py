"""EchoMind's vocal attributes: what a script's `spoken_info` label means.

Invariant: this is the only table of them; every label that the official code knows is in it, each under one of 3 coarse
and 12 fine dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Coarse = Literal["speaker", "paralinguistic", "environment"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One vocal attribute."""

    name: str
    """Short: `sad`, `wind blowing`."""
    coarse: Coarse
    fine: str
    """`gender`, `emotion`, `weather` ..."""


_SHORT_NAMES: Mapping[tuple[Coarse, str], Mapping[str, str]] = {
    ("speaker", "gender"): {"male": "male", "female": "female"},
    ("speaker", "age"): {"child": "child", "adult": "adult", "elderly": "elderly"},
    ("paralinguistic", "physiological_state"): {
        "Hoarse voice": "hoarse",
        "vocal fatigue": "tired",
        "breathless sound / gasping sound / heavy breathing sound": "breath",
        "sobbing sound": "sobbing",
    },
    ("paralinguistic", "emotion"): {
        f"{emotion}-toned expressive voice": emotion
        for emotion in ("happy", "sad", "surprise", "angry", "fear", "disgust")
    },
    ("paralinguistic", "volume"): {"shout": "shout", "whisper": "whisper"},
    ("paralinguistic", "speed"): {"fast speaking pace": "fast", "slow speaking pace": "slow"},
    ("paralinguistic", "non_verbal_expression"): {
        "cough voice": "cough",
        "sigh sound": "sigh",
        "laughter sound": "laughter",
        "yawn sound": "yawn",
        "moan sound": "moan",
    },
}
_SOUNDS: Mapping[str, tuple[str, ...]] = {
    "weather": ("wind blowing", "thunderstorm and thunder", "raining"),
    "location": ("driving a car", "subway", "sea waves", "playing basketball"),
    "human_voices": (
        "applause from a crowd",
        "crowd cheering",
        "crowd's chatter",
        "children playing",
        "children speaking",
    ),
    "sudden_event": ("vehicle honking", "alarm clock ringing", "ringtone"),
    "others": ("dog(s) barking", "happy music", "funny music", "sad music", "exciting music", "angry music"),
}


def _table() -> dict[str, Attribute]:
    voices = {
        label: Attribute(name, coarse, fine)
        for (coarse, fine), names in _SHORT_NAMES.items()
        for label, name in names.items()
    }
    sounds = {
        f"sound of {name}": Attribute(name, "environment", fine)
        for fine, names in _SOUNDS.items()
        for name in names
    }
    return voices | sounds


ATTRIBUTES: Mapping[str, Attribute] = MappingProxyType(_table())
"""`spoken_info` label -> attribute. Labels: `voice_info` in src/eval-slm/utils.py of hlt-cuhksz/EchoMind; fine
dimensions: Table 2 of arXiv 2510.22758, whose 39 attributes merge some of these (`adult` is an alternative only). The
sounds have no short names upstream: theirs here are the labels without "sound of"."""
