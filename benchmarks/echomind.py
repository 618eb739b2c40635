"""EchoMind (arXiv 2510.22758): does a model hear how something is said, and does its reply show it?

Every script is spoken in up to three voices: `target` carries the vocal cue, `alternative` another one, `neutral` none.
The data (CC BY-NC-SA 4.0) is the user's own download; data/echomind_mini/, of the same layout, is part of this
repository.

Invariant: a task reads the data, never writes it; an item's key, stimulus and request depend on the data alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import audio
from benchmarks.echomind_prompts import PROMPT_SETS
from benchmarks.echomind_scripts import SOURCES, VOICES, Script, Source, Voice, read_scripts
from benchmarks.templates import filled
from farm.types import AudioSegment, Item, Prompt, Request, Stimulus

VOICE_SOURCES: Mapping[Source, str] = {"synthesis": "synthetic", "human": "human"}
"""The data's word for a source -> the factor `voice_source`."""
PROBED_AT_ONCE = 64
"""Recordings decoded ahead of the items asked for: the first few items of 3,356 come at once."""


class Conversation:
    """`echomind.conversation`: one spoken reply to one spoken utterance, heard with no text beside it.

    Args:
        path: the folder that holds `data_synthesis/` and `data_human/`, or the one that is asked for.
        voice: which of `target`, `alternative`, `neutral`; scripts about the speaker's gender or age have no
            neutral one.
        source: which of `synthesis`, `human`.
        prompt_set: `echomind_code` (the released runner's texts) or `echomind_paper`.

    Raises:
        ValueError: an unknown voice, source or prompt set.
    """

    version = "1"
    name = "echomind.conversation"
    benchmark = "echomind"

    def __init__(
        self,
        *,
        path: str,
        voice: Sequence[Voice] = ("target",),
        source: Sequence[Source] = ("synthesis",),
        prompt_set: str = "echomind_code",
    ) -> None:
        self._path = Path(path).expanduser()
        self._voices = _chosen("voice", voice, VOICES)
        self._sources = _chosen("source", source, SOURCES)
        if prompt_set not in PROMPT_SETS:
            raise ValueError(f"prompt_set={prompt_set}: one of {', '.join(PROMPT_SETS)}")
        self._prompts = PROMPT_SETS[prompt_set]

    def items(self) -> Iterator[Item]:
        """One item a recording, in the data's order, a script's voices together.

        Yields:
            Items whose `gold` has `spoken_info`, the data's whole `record` of the script and, where the data has them,
            `transcript` and `references`. A recording that cannot be decoded is an item of 0 seconds.

        Raises:
            ValueError: the data folder is wrong; the message lists all that is.
        """
        scripts = read_scripts(self._path, self._sources, self._voices)
        recordings = iter(
            [(script, voice) for script in scripts for voice in self._voices if script.has(voice)]
        )
        while some := list(islice(recordings, PROBED_AT_ONCE)):
            yield from self._items(some)

    def _items(self, recordings: Sequence[tuple[Script, Voice]]) -> Iterator[Item]:
        paths = [_path(script, voice) for script, voice in recordings]
        for (script, voice), path, probe in zip(recordings, paths, audio.probe_many(paths), strict=True):
            question = AudioSegment(role="question", path=path, sha256=probe.sha256, seconds=probe.seconds)
            yield Item(
                key=f"{script.source}/{script.case_id}/{voice}",
                benchmark=self.benchmark,
                task=self.name,
                unit=script.case_id,
                pair_id=script.case_id,
                stimulus=Stimulus(turns=((question,),)),
                gold=_gold(script, voice),
                factors=_factors(script, voice),
            )

    def template(self, prompt: Prompt) -> str:
        """The prompt's text before the topic is filled in, for every coarse dimension that has one of its own."""
        return prompt.system if prompt.system is not None else self._prompts.templates(prompt.strength)

    def request(self, item: Item, prompt: Prompt) -> Request:
        """The recording alone, under the prompt's system text.

        Raises:
            ValueError: a template of the user's own names a placeholder that is no factor of the item.
        """
        template = prompt.system
        if template is None:
            template = self._prompts.template(prompt.strength, item.factors["coarse_dimension"])
        return Request(
            system=filled(template, item.factors, f"prompt {prompt.name}"), turns=item.stimulus.turns
        )


def _chosen(name: str, values: Sequence[str], known: Sequence[Any]) -> tuple[Any, ...]:
    given = (values,) if isinstance(values, str) else tuple(values)
    if not given or not set(given) <= set(known):
        raise ValueError(f"{name}={list(given)}: one or more of {', '.join(known)}")
    return tuple(value for value in known if value in given)


def _path(script: Script, voice: Voice) -> str:
    recording = script.recording(voice)
    assert recording is not None, "read_scripts lets no such script pass"
    return str(recording)


def _factors(script: Script, voice: Voice) -> dict[str, str]:
    attribute = script.attribute
    return {
        "voice_style": voice,
        "voice_source": VOICE_SOURCES[script.source],
        "attribute": attribute.name,
        "fine_dimension": attribute.fine,
        "coarse_dimension": attribute.coarse,
        "topic": script.topic,
    }


def _gold(script: Script, voice: Voice) -> dict[str, Any]:
    """The judge prompt of the release calls the script's text `speak_A`; its code shows no name for the references."""
    gold: dict[str, Any] = {"spoken_info": script.spoken_info, "record": dict(script.record)}
    if isinstance(text := script.record.get("speak_A"), str):
        gold["transcript"] = text
    references = script.info(voice).get(f"{voice}_responses")
    if isinstance(references, list) and references:
        gold["references"] = [str(reference) for reference in references]
    return gold
