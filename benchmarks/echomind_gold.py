"""What EchoMind's data knows of a recording: its words, the cue that its voice carries, replies that would fit.

The released code shows the names of some fields only; for the others every plausible name is looked for. A field that
is there under none of them is not part of the gold, and what needs it is `unavailable`.

Invariant: gold follows the voice that was heard. Target speech has the high-EQ references, alternative speech the
alternative empathetic ones, neutral speech the cue-agnostic ones; they are never pooled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.echomind_attributes import ATTRIBUTES
from benchmarks.echomind_scripts import Script, Voice

TRANSCRIPT_FIELDS = (
    "speak_A", "speak_a", "speakA", "transcript", "transcription", "text", "utterance", "user_utterance", "user_text",
    "script", "content",
)  # fmt: skip
"""`speak_A` is what the release's judge prompt calls the words."""
_KINDS: Mapping[Voice, tuple[str, ...]] = {
    "target": ("target", "high_eq", "high_EQ", "highEQ", "empathetic"),
    "alternative": ("alternative", "alternative_empathetic", "alternative_eq"),
    "neutral": ("neutral", "cue_agnostic", "cueAgnostic", "text_only"),
}
_RESPONSES = ("responses", "response", "references", "reference_responses", "response_list", "response_texts")
_CUES = ("spoken_info", "audio_attribute", "attribute", "voice_info", "style", "vocal_cue")


def gold(script: Script, voice: Voice) -> dict[str, Any]:
    """`record` (all the data says of the script), `spoken_info` (target speech), `cue`, `transcript`, `references`."""
    found: dict[str, Any] = {"record": dict(script.record), "voice": voice}
    if voice == "target":
        found["spoken_info"] = script.spoken_info
    cue = NEUTRAL if voice == "neutral" else cue_of(script, voice)
    known = {"cue": cue, "transcript": transcript(script), "references": references(script, voice)}
    return found | {name: value for name, value in known.items() if value}


NEUTRAL = "neutral voice, no vocal cue"
"""What a judge is told of a neutral voice."""


def transcript(script: Script) -> str:
    """The words that are spoken; empty where the data has none."""
    values = (script.record.get(name) for name in TRANSCRIPT_FIELDS)
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def cue_of(script: Script, voice: Voice) -> str:
    """What the voice carries, in the data's words; empty for a neutral voice, or where the data does not say."""
    if voice == "target":
        return script.spoken_info
    if voice == "neutral":
        return ""
    info = script.info(voice)
    names = [f"{prefix}{name}" for name in _CUES for prefix in (f"{voice}_", "")]
    values = [*(info.get(name) for name in names), *(script.record.get(f"{voice}_{name}") for name in _CUES)]
    return next((value for value in values if isinstance(value, str) and value.strip()), "")


def cue_coarse(script: Script, voice: Voice) -> str:
    """The coarse dimension of the cue that the voice carries; the script's where the label is in no table."""
    attribute = ATTRIBUTES.get(cue_of(script, voice))
    return attribute.coarse if attribute else script.attribute.coarse


def references(script: Script, voice: Voice) -> list[str]:
    """Replies that fit what is heard in this voice: five in the paper; empty where the data has none."""
    values = [
        *_responses(script.info(voice), voice, short=True),
        *_responses(script.record, voice, short=False),
    ]
    return next((found for found in map(_texts, values) if found), [])


def _responses(fields: Mapping[str, Any], voice: Voice, *, short: bool) -> Iterator[Any]:
    """Fields that may hold the replies; inside a voice's own entry their names need not say which."""
    for name in _RESPONSES:
        for kind in _KINDS[voice]:
            yield fields.get(f"{kind}_{name}")
        if short:
            yield fields.get(name)
    for group in ("responses", "response", "references"):
        if isinstance(nested := fields.get(group), Mapping):
            yield from (nested.get(kind) for kind in _KINDS[voice])


def _texts(value: Any) -> list[str]:
    several: Sequence[Any] = value if isinstance(value, list) else [value]
    texts = [
        entry.get("text") or entry.get("response") if isinstance(entry, Mapping) else entry
        for entry in several
    ]
    return [text for text in texts if isinstance(text, str) and text.strip()]
