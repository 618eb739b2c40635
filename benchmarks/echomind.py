"""EchoMind (arXiv 2510.22758): does a model hear how something is said, and does its reply show it?

Every script is spoken in up to three voices: `target` carries the vocal cue, `alternative` another one, `neutral` none.
Four tasks ask about the same recordings: what was said (`echomind.asr`), how (`echomind.understanding`), what follows
from both (`echomind.reasoning`), and for a reply (`echomind.conversation`). Their items' unit is the script.

The data (CC BY-NC-SA 4.0) is the user's own download; data/echomind_mini/, of the same layout, is part of this
repository.

Invariant: a task reads the data, never writes it; an item's key, stimulus and request depend on the data alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

import audio
from benchmarks import echomind_prompts as prompts
from benchmarks.echomind_gold import cue_coarse, cue_of, gold
from benchmarks.echomind_questions import Level, Question, read_questions
from benchmarks.echomind_scripts import SOURCES, VOICES, Script, Source, Voice, read_scripts
from benchmarks.hub import data_folder
from benchmarks.templates import filled
from farm.types import AudioSegment, Item, Prompt, Request, Stimulus, TextSegment, Wording

VOICE_SOURCES: Mapping[Source, str] = {"synthesis": "synthetic", "human": "human"}
"""The data's word for a source -> the factor `voice_source`."""
PROBED_AT_ONCE = 64
"""Recordings decoded ahead of the items asked for: the first few items of 3,356 come at once."""
OWN = (Prompt(name="own", strength="own"),)
Asked = TypeVar("Asked")


class _Task:
    """What the four tasks share: which data, which voices, and the model's own words.

    Args:
        path: the folder that holds `data_synthesis/` and `data_human/`, or `hub:hlt-cuhksz/EchoMind@commit`.
        voice: which of `target`, `alternative`, `neutral`; scripts about the speaker's gender or age have no
            neutral one.
        source: which of `synthesis`, `human`.

    Raises:
        ValueError: an unknown voice or source.
    """

    version = "1"
    name: str
    benchmark = "echomind"
    prompts: tuple[Prompt, ...] = OWN
    arms: Mapping[str, tuple[str, ...]] = {}

    def __init__(
        self, *, path: str, voice: Sequence[Voice] = ("target",), source: Sequence[Source] = ("synthesis",)
    ) -> None:
        self._given = path
        self._voices: tuple[Voice, ...] = _chosen("voice", voice, VOICES)
        self._sources: tuple[Source, ...] = _chosen("source", source, SOURCES)
        self._wording = Wording()

    def varied(self, arm: Mapping[str, str], wording: Wording) -> Self:
        """See `farm.types.VariedTask`."""
        other = copy.copy(self)
        other._wording = wording
        return other

    def _folder(self) -> Path:
        return data_folder(self._given, [f"data_{source}/*" for source in self._sources])

    def _scripts(self, path: Path, voices: Sequence[Voice]) -> list[Script]:
        return read_scripts(path, self._sources, voices)

    def _recorded(self) -> Iterator[tuple[Script, Voice, AudioSegment]]:
        """Every recording, in the data's order, a script's voices together."""
        scripts = self._scripts(self._folder(), self._voices)
        wanted = ((script, voice) for script in scripts for voice in self._voices if script.has(voice))
        for (script, voice), segment in _heard(wanted, lambda recording: recording):
            yield script, voice, segment

    def _item(self, key: str, pair_id: str, script: Script, turn: tuple[Any, ...], **fields: Any) -> Item:
        return Item(
            key=f"{script.source}/{key}",
            benchmark=self.benchmark,
            task=self.name,
            unit=script.case_id,
            pair_id=pair_id,
            stimulus=Stimulus(turns=(turn,)),
            **fields,
        )


class Conversation(_Task):
    """`echomind.conversation`: one spoken reply to one spoken utterance, heard with no text beside it.

    The arm `cue` at `oracle` tells the model the vocal cue of the recording that it hears (`echomind_prompts.ORACLE`).

    Args:
        path: see `_Task`.
        voice: see `_Task`.
        source: see `_Task`.
        prompt_set: `echomind_code` (the released runner's texts) or `echomind_paper`.

    Raises:
        ValueError: an unknown voice, source or prompt set.
    """

    name = "echomind.conversation"
    prompts = ()
    arms: Mapping[str, tuple[str, ...]] = {"cue": ("none", "oracle")}

    def __init__(
        self,
        *,
        path: str,
        voice: Sequence[Voice] = ("target",),
        source: Sequence[Source] = ("synthesis",),
        prompt_set: str = "echomind_code",
    ) -> None:
        super().__init__(path=path, voice=voice, source=source)
        if prompt_set not in prompts.PROMPT_SETS:
            raise ValueError(f"prompt_set={prompt_set}: one of {', '.join(prompts.PROMPT_SETS)}")
        self._prompts = prompts.PROMPT_SETS[prompt_set]
        self._oracle = False

    def varied(self, arm: Mapping[str, str], wording: Wording) -> Self:
        """See `farm.types.VariedTask`."""
        other = super().varied(arm, wording)
        other._oracle = arm.get("cue") == "oracle"
        return other

    def items(self) -> Iterator[Item]:
        """One item a recording, in the data's order, a script's voices together.

        Yields:
            Items with `benchmarks.echomind_gold.gold`. A recording that cannot be decoded is an item of 0 seconds.

        Raises:
            ValueError: the data folder is wrong; the message lists all that is.
        """
        for script, voice, segment in self._recorded():
            yield self._item(
                f"{script.case_id}/{voice}",
                script.case_id,
                script,
                (segment,),
                gold=gold(script, voice) | _oracle_gold(script, voice),
                factors=_factors(script, voice),
            )

    def template(self, prompt: Prompt) -> str:
        """The prompt's text before the topic is filled in, for every coarse dimension that has one of its own."""
        own = prompt.system
        text = self._prompts.templates(prompt.strength, self._wording) if own is None else own
        return "\n\n".join([text, *prompts.ORACLE.values()]) if self._oracle else text

    def request(self, item: Item, prompt: Prompt) -> Request:
        """The recording (and the note on its cue, where the arm says so) under the prompt's system text.

        Raises:
            ValueError: a template of the user's own names a placeholder that is no factor of the item; the data does
                not say what the voice carries and the model is to be told.
        """
        template = prompt.system
        if template is None:
            coarse = item.factors["coarse_dimension"]
            template = self._prompts.template(prompt.strength, coarse, self._wording)
        (turn,) = item.stimulus.turns
        note = (TextSegment(role="cue", text=_note(item)),) if self._oracle else ()
        return Request(
            system=filled(template, item.factors, f"prompt {prompt.name}"), turns=((*turn, *note),)
        )


class Transcription(_Task):
    """`echomind.asr`, content understanding: what was said? The model's own way of asking for a transcript, if any."""

    name = "echomind.asr"

    def items(self) -> Iterator[Item]:
        """One item a recording; its `gold` has the `transcript` where the data has one.

        Raises:
            ValueError: the data folder is wrong; the message lists all that is.
        """
        for script, voice, segment in self._recorded():
            yield self._item(
                f"{script.case_id}/{voice}",
                script.case_id,
                script,
                (segment,),
                gold=gold(script, voice),
                factors=_factors(script, voice),
            )

    def template(self, prompt: Prompt) -> str:
        """System and user text."""
        asked = prompts.transcribe(self._wording)
        return f"{asked.system}\n\n{asked.user}"

    def request(self, item: Item, prompt: Prompt) -> Request:
        """The recording and the instruction to transcribe it."""
        asked = prompts.transcribe(self._wording)
        (turn,) = item.stimulus.turns
        user = () if asked.user is None else (TextSegment(role="transcribe", text=asked.user),)
        return Request(system=asked.system, turns=((*turn, *user),))


class _Choice(_Task):
    """Multiple-choice questions about recordings."""

    level: Level

    def items(self) -> Iterator[Item]:
        """One item a question about a recording of the chosen voices, in the data's order.

        Yields:
            Items whose `gold` has `answer` (the right letter) and `options` (letter -> text).

        Raises:
            ValueError: the data folder is wrong, or questions have no right answer; the message lists all of them.
        """
        path = self._folder()
        scripts = self._scripts(path, self._voices)
        questions = read_questions(path, self.level, scripts, self._voices)
        for question, segment in _heard(questions, lambda asked: (asked.script, asked.voice)):
            yield self._question_item(question, segment)

    def _question_item(self, question: Question, segment: AudioSegment) -> Item:
        text = prompts.question_text(question.question, question.options_text)
        return self._item(
            question.key,
            f"{question.script.case_id}/{question.type}",
            question.script,
            (segment, TextSegment(role="question", text=text)),
            gold={
                "answer": question.answer,
                "options": dict(question.options),
                "record": dict(question.record),
            },
            factors={**_factors(question.script, question.voice), "question_type": question.type},
        )

    def template(self, prompt: Prompt) -> str:
        """The system text; the question is the item's."""
        return prompts.choose(self._wording)

    def request(self, item: Item, prompt: Prompt) -> Request:
        """The recording and the question, under the instruction to answer with a letter."""
        return Request(system=prompts.choose(self._wording), turns=item.stimulus.turns)


class Understanding(_Choice):
    """`echomind.understanding`: how does the voice sound, what is behind it? Eight types of question."""

    name = "echomind.understanding"
    level: Level = "understanding"


class Reasoning(_Choice):
    """`echomind.reasoning`: what follows from words and voice together? Ten types of question."""

    name = "echomind.reasoning"
    level: Level = "reasoning"


def _heard(
    asked: Sequence[Asked] | Iterator[Asked], recording: Callable[[Asked], tuple[Script, Voice]]
) -> Iterator[tuple[Asked, AudioSegment]]:
    """Everything asked about recordings, with the recording's digest and length, probed some way ahead."""
    left = iter(asked)
    while some := list(islice(left, PROBED_AT_ONCE)):
        paths = [_path(*recording(each)) for each in some]
        for each, path, probe in zip(some, paths, audio.probe_many(paths), strict=True):
            yield each, AudioSegment(role="question", path=path, sha256=probe.sha256, seconds=probe.seconds)


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


def _oracle_gold(script: Script, voice: Voice) -> dict[str, Any]:
    """The note that the arm cue=oracle gives; absent where the data does not say what the voice carries."""
    if voice == "neutral":
        return {"cue_note": prompts.oracle("", None)}
    cue = cue_of(script, voice)
    return {"cue_note": prompts.oracle(cue_coarse(script, voice), cue)} if cue else {}


def _note(item: Item) -> str:
    if "cue_note" not in item.gold:
        raise ValueError(f"arms.cue=oracle: {item.key}: the data does not say what this voice carries")
    return str(item.gold["cue_note"])
