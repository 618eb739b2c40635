"""Which letters a reply states as its answer, and how plainly.

Invariant: a letter counts only where it can be nothing but a label: the article A, the pronoun I, initials and names
(vitamin C, speaker A) do not, nor does a letter that the reply rejects, doubts, asks about or takes back, nor the list
of letters that an instruction names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

_OPEN = r"\"'“‘「『《【(\[{<|"
_CLOSE = r"\"'”’」』》】)\]}>|"
_ALNUM = r"A-Za-z0-9À-ɏ"
_HEDGE = (
    r"(?:let me see|let's see|i think|i believe|i guess|i would say|i'd say|in my opinion|you know|of course|"
    r"going to be|pretty sure|without (?:a )?doubt|no doubt|most likely|more likely|it['’]s|it is|this is|"
    r"definitely|probably|likely|clearly|certainly|obviously|surely|maybe|perhaps|possibly|actually|really|simply|"
    r"just|u+h+|u+m+|e+r+m*|h+m+|m+|eh|ah|oh|okay|ok|well|like|so|indeed|quite|still|again|now|then|therefore|thus|"
    r"hence|option|choice|letter|number|answer|the|that|also|either|我想|我觉得|我认为|可能|应该|大概|肯定|一定|显然|嗯)"
)
_GAP = rf"(?:[\s:,;=→\-–—{_OPEN}]|\.{{2,}}|{_HEDGE}(?![{_ALNUM}])|选项|的是|的|是)*"
_BE = (
    r"(?:is|was|would be|should be|must be|will be|has to be|have to be|could be|might be|may be|seems to be)"
)
_NOUN = r"(?:answers?|ans|solution|choice|option|selection|pick|guess|vote|letter|conclusion|verdict|result|response)"
_STATED = re.compile(
    rf"(?:\b{_NOUN}\b[^.!?;\n]{{0,60}}?(?:\b{_BE}|['’]s)(?![{_ALNUM}'’])"
    r"|\b(?:correct|right|best|likely) one\b[^.!?;\n]{0,30}?\bis\b"
    rf"|\b(?:{_NOUN}|final|selected|chosen)\b\s*[\"'”]?\s*(?:[:=→>\-–—]+|\.(?=\s))"
    r"|\b(?:choos(?:e|ing)|chose|pick(?:ed|ing)?|select(?:ed|ing)?|go(?:ing)? (?:with|for)|went with|"
    r"opt(?:ing|ed)? for|settl(?:e|ing) (?:on|for)|vot(?:e|ing) for|lean(?:ing)? (?:towards?|to)|"
    r"stick(?:ing)? with|say|guess|bet on)\b"
    rf"|\b(?:it|that|this)(?:['’]s|\s+is|\s+(?:must|should|has to|would|will)\s+be)(?![{_ALNUM}'’])"
    r"|\b(?:must|should|has to) be\b"
    r"|(?:答案|结论|结果|选项|正确的?|对的|最合适的|最佳的?)(?:答案|选项)?(?:应该|应当|应|就|可能)?(?:是|为|选|:)+"
    r"|答案|(?:选择|应选|我选|选)(?:的?是|:)?|认为(?:是|选)?|应该是|应为|而是|就是|是"
    rf"){_GAP}\Z",
    re.IGNORECASE,
)
_FINAL = re.compile(r"\bfinal(?:ly)?\b|\bconclusion\b|最终|综上|最后", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?:if|whether|suppose|assuming|unless|why|was going to|was about to|at first|initially|first|might|tempted to)"
    r"\b[^.,;:!?\n]{0,30}\Z",
    re.IGNORECASE,
)
"""Before a cue: the answer is only thought of."""
_CONFIRMED = re.compile(
    rf"[{_CLOSE}.:]*\s*(?:(?:{_BE}|seems|sounds|looks|appears to be)\s+(?:{_HEDGE}\s+)*(?:the\s+)?(?:one\b|it\b|"
    r"my\b|correct\b|right\b|best\b|better\b|closest\b|most\b|likely\b|more likely\b|accurate\b|final\b|answer\b|"
    r"appropriate\b)|(?:fits|matches|works|suits)\b|(?:选项|项)?(?:才?是)?(?:正确|对的|最|合适|符合|答案))",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"(?:\b(?:not|never|neither|nor|cannot|cant|dont|except|unlike|excluding|excludes?|rul(?:e|es|ed|ing) out|"
    r"eliminat\w+|reject\w*|discard\w*|dismiss\w*|rather than|instead of|as opposed to|other than|"
    r"(?<!no )(?<!any )(?<!a )doubt)\b|n['’]t\b"
    r"|\b(?:wrong|incorrect) (?:answers?|options?|choices?|ones?)(?: is| are|:)"
    r"|不是|并非|不选|而非|不会是|不可能是|排除|除了|不应选|不该选|不能选|不应该选|不可能选)"
    r"(?:[ :\"'“‘(\[]*(?:think|thought|believe|say|it['’]?s|it|that['’]?s|that|be|is|are|been|choose|choosing|pick|"
    r"select|go|going|with|for|the|an?|options?|answers?|choices?|letters?|likely|really|necessarily|either|both|"
    r"sure|certain|if|whether|correct|right|best|to|probably|definitely|quite|would|could|should|have|seems?|"
    r"sounds?|looks?|like|any|of|one|选项|选|是)\b)*"
    r"[ :\"'“‘(\[]*\Z",
    re.IGNORECASE,
)
_BAD = (
    r"(?:wrong|incorrect|false|untrue|unlikely|impossible|ruled out|eliminated|excluded|rejected|dismissed|out|"
    r"invalid|inaccurate|irrelevant|less)\b"
)
_REJECTED = re.compile(
    rf"[{_CLOSE}]*\s*(?:"
    rf"(?P<verb>is|are|was|were|has been|have been|seems?|sounds?|looks?|would be|can be|could be|should be)\s+"
    rf"(?:(?:{_HEDGE}|also|both|all|simply|completely|totally)\s+)*(?:not\b(?! (?:only|just|bad)\b)|{_BAD})"
    r"|(?P<verb2>(?:is|are|was|were|does|do|did|could|would|should|wo|ca)n['’]?t|can['’]?t|cannot|"
    r"(?:does|do|did|can|could|would|should|may|might) not)\b"
    r"|(?:[-–—:→=]+>?\s*)?(?:[✗✘❌×]|(?:wrong|incorrect|ruled out|eliminated)\b)"
    r"|(?:选项|项)?[也都均]?(?:肯定|显然)?(?:是)?(?:不对|不正确|不是|错|不符|不合适|不可能|排除|有误|可以排除))",
    re.IGNORECASE,
)
_PLURAL = re.compile(r"are\b|were\b|do\b|have\b|don|aren|weren|can\b|could\b", re.IGNORECASE)
_CORRECTED = re.compile(
    r"\b(?:wait|scratch that|correction|on second thought|i mean|i meant|or rather|my mistake|hold on|"
    r"change my mind)\b|\bsorry,? (?:it|that|the answer|no\b|not\b|option)|\bno\s*[,.!]"
    r"|不对|等等|等一下|更正|[,。]\s*不[,。]",
    re.IGNORECASE,
)
_LETTER = re.compile(
    rf"(?<![{_ALNUM}&+])(?<![{_ALNUM}][-'’])([A-Za-z])(?![{_ALNUM}&+#]|['’][A-Za-z]|-[{_ALNUM}])"
)
_JOINED = re.compile(
    rf"[{_CLOSE}\s]*[?.]?\s*(?:(?:[,/、&+|]|\b(?:and|or|nor|plus|vs|versus)\b\.?|和|或者?|与|跟|以及|及|还是)\s*)+"
    rf"(?:(?:maybe|perhaps|possibly|probably|even|also|either|is it|the|option|choice|letter|answer|选项)\s*,?\s*)*"
    rf"[{_OPEN}\s]*",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\b(?:between|in)\s+(?:options?\s+)?\Z|之间|在\s*\Z", re.IGNORECASE)
_NAMED_BEFORE = re.compile(
    r"\b(?:vitamin|plan|type|grade|class|hepatitis|model|section|appendix|figure|team|group|speaker|person|mr|mrs|ms|"
    r"dr|exhibit|series|part|level|blood|line|track|version|side|voice|audio|clip|recording|sound|sample|user|"
    r"student|note|page|room|row|unit|channel|gate|terminal|platform|middle)\.? \Z",
    re.IGNORECASE,
)
_NAMED_AFTER = re.compile(r"\s(?:major|minor|sharp|flat)\b", re.IGNORECASE)
_NO_NOUN = (
    r"(?:because|cause|cuz|bc|since|as|for|but|and|or|is|was|are|were|seems|sounds|looks|would|could|should|must|might|may|can|will|"
    r"has|have|fits|matches|works|suits|isn['’]?t|wasn['’]?t|doesn['’]?t|the|this|that|these|those|it|it['’]s|he|she|"
    r"they|we|you|i|his|her|its|their|in|on|at|of|by|with|from|to|if|when|while|due|based|given|which|although|though|"
    r"so|then|please)"
)
_NOT_AN_ARTICLE = re.compile(
    rf"\Z|\s*\n|[.:;!?{_CLOSE}/=→✓✔✅。、](?!\.\.)|\s*[-–—(\[→✓✔✅=&+/]|\s+{_NO_NOUN}\b|\s*[\u3400-\u9fff]",
    re.IGNORECASE,
)
_COMMA = re.compile(rf"\s*,(?!\s*(?:{_HEDGE}|kind of|sort of)(?![{_ALNUM}]))", re.IGNORECASE)
_LABEL = re.compile(r"\s*[.):\]](?=\s|\Z|[A-Z])|\s*[\]}】」』]|\s+[-–—]\s")
_HEAD_END = re.compile(
    rf"\Z|\s*\n|[{_CLOSE}]*\s*[.,:;!?。、)\]\-–—(]|\s+(?:because|since|as|due)\b|\s*[\u3400-\u9fff]"
)
_ASKED = re.compile(rf"[{_CLOSE}]*\s*\?")
_FILLERS = re.compile(rf"{_HEDGE}(?![{_ALNUM}])", re.IGNORECASE)
_REASON = re.compile(rf"[{_CLOSE}.,]*\s*(?:because|since|as|due)\b", re.IGNORECASE)
_CALLED = re.compile(r"(?:option|choice|letter|answer|选项)\s*[\"'“‘(\[]?\Z", re.IGNORECASE)
_ALONE_BEFORE = re.compile(rf"(?:\A|\n)(?:option |choice |letter )?[{_OPEN}\s]*\Z", re.IGNORECASE)
_ALONE_AFTER = re.compile(rf"[{_CLOSE}\s.:!?。]*(?:\n|\Z)")
_SPOKEN = {"ay": "A", "bee": "B", "be": "B", "cee": "C", "see": "C", "sea": "C", "dee": "D", "ee": "E",
           "eff": "F", "gee": "G", "jee": "G", "aitch": "H"}  # fmt: skip
"""How a speech recogniser writes a letter that was spoken."""
_SPOKEN_WORD = re.compile(rf"(?<![{_ALNUM}'’-])(?:{'|'.join(_SPOKEN)})(?![{_ALNUM}'’-])", re.IGNORECASE)
_SPOKEN_END = re.compile(rf"\Z|\n|[.,:;!?。{_CLOSE}](?!\.\.)|\s+(?:because|since|as in)\b")
_NO_WORD_BUT_LETTERS = ("bee", "cee", "dee")
_LOOK_BACK = 160
"""Characters before a letter in which its cue is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A letter that a reply states."""

    letter: str
    start: int
    end: int
    group: int
    """Letters in one list (`A or B`) share it."""
    stated: bool = False
    """By a phrase that gives an answer, alone on its line, or called right."""
    final: bool = False
    head: bool = False
    """The reply begins with it."""
    reasoned: bool = False
    """`B because ...`: labels that follow are part of the reason."""
    label: bool = False
    """Set like an option's label: `(B)`, `B.`"""
    asked: bool = False
    """`B?`"""


def mentions(text: str, letters: Sequence[str]) -> list[Mention]:
    """The letters that plain text states, in order; an invalid one only where it is stated outright.

    Args:
        text: what `scoring.choice_text.plain` gives.
        letters: the valid ones, upper case.
    """
    found: list[Mention] = []
    for number, group in enumerate(_groups(text)):
        if _is_echo(group, letters) or _BETWEEN.search(_before(text, group[0].start())):
            continue
        found += _of_group(text, group, number, letters)
    found += _spoken(text, letters)
    return sorted(found, key=lambda mention: mention.start)


def settled(found: Sequence[Mention]) -> set[str]:
    """The letters left of some mentions when what was taken back, asked or overruled by a final answer is gone."""
    kept = list(found)
    for before, after in pairwise(found):
        if before.letter != after.letter and before.group == after.group:
            return {mention.letter for mention in found}
    if any(mention.final for mention in kept):
        kept = [mention for mention in kept if mention.final]
    if len({mention.letter for mention in kept}) > 1:
        kept = [mention for mention in kept if not mention.asked]
    return {mention.letter for mention in kept}


def without_corrected(text: str, found: Sequence[Mention]) -> list[Mention]:
    """The mentions after the last correction: `A. No, wait, B`; of plainly stated ones `actually` is one too."""
    start = 0
    weak = all(mention.stated for mention in found)
    for number, (before, after) in enumerate(pairwise(found)):
        between = text[before.end : after.start]
        corrected = _CORRECTED.search(between) or (
            weak and re.search(r"\bactually\b", between, re.IGNORECASE)
        )
        if before.group != after.group and corrected:
            start = number + 1
    return list(found[start:])


def _cue(before: str) -> re.Match[str] | None:
    """The nearest phrase that gives the answer which follows."""
    found = nearest = _STATED.search(before)
    while found:
        nearest = found
        found = _STATED.search(before, found.start() + 1)
    return nearest


def _before(text: str, at: int) -> str:
    return text[max(0, at - _LOOK_BACK) : at]


def _groups(text: str) -> Iterator[list[re.Match[str]]]:
    """Letters that stand in one list, as one group; a letter by itself is a group of one."""
    group: list[re.Match[str]] = []
    for match in _LETTER.finditer(text):
        if _is_initial(text, match) or not _may_be_label(text, match):
            continue
        if group and not _JOINED.fullmatch(text, group[-1].end(), match.start()):
            yield group
            group = []
        group.append(match)
    if group:
        yield group


def _is_initial(text: str, match: re.Match[str]) -> bool:
    """Part of `U.S.` or `e.g.`, or of a name: vitamin C, speaker A, C major."""
    before, after = text[max(0, match.start() - 20) : match.start()], text[match.end() : match.end() + 8]
    dotted = re.search(r"(?:\A|[^A-Za-z])[A-Za-z]\.\Z", before) or re.match(r"\.[A-Za-z](?![A-Za-z])", after)
    return bool(dotted or _NAMED_BEFORE.search(before) or _NAMED_AFTER.match(after))


def _may_be_label(text: str, match: re.Match[str]) -> bool:
    """Not the article A nor the pronoun I, of which a lower-case one needs more to be a label than its place."""
    letter = match[1]
    if letter not in "AaIi":
        return True
    if letter in "Ii":
        return bool(re.compile(rf"\Z|\n|[.:;{_CLOSE}]").match(text, match.end()))
    plainly = bool(_NOT_AN_ARTICLE.match(text, match.end()))
    if letter == "A":
        return plainly or bool(_COMMA.match(text, match.end()))
    before = _before(text, match.start())
    cued = _STATED.search(before) or _CALLED.search(before)
    comma = bool(cued and _COMMA.match(text, match.end()))
    listed = bool(re.compile(r"\s*(?:/|,? ?(?:or|and) [b-h]\b|, ?[b-h]\b)").match(text, match.end()))
    bracketed = before[-1:] in tuple("([{") and _LABEL.match(text, match.end())
    return listed or bool((plainly or comma) and (cued or bracketed or _ALONE_BEFORE.search(before)))


def _is_echo(group: Sequence[re.Match[str]], letters: Sequence[str]) -> bool:
    """The instruction's own list: every valid letter, perhaps more."""
    return len(group) > 1 and {match[1].upper() for match in group} >= set(letters)


def _of_group(
    text: str, group: Sequence[re.Match[str]], number: int, letters: Sequence[str]
) -> Iterator[Mention]:
    before = _before(text, group[0].start())
    if negated := _NEGATED.search(before):
        if not _is_instead(text, group, negated[0]):
            return
        group = group[1:]
    cue = _cue(before)
    if cue and _CONDITION.search(before[: cue.start()]):
        return
    rejected = _REJECTED.match(text, group[-1].end())
    if rejected:
        group = [] if _rejects_all(rejected) else group[:-1]
    for match in group:
        mention = _mention(text, match, number)
        if cue:
            final = bool(_FINAL.search(before[max(0, cue.start() - 20) :]))
            mention = replace(mention, stated=True, final=final)
        if mention.letter in letters or mention.stated or mention.head:
            yield mention


def _is_instead(text: str, group: Sequence[re.Match[str]], negation: str) -> bool:
    """`Instead of A, B`: the second of two is meant."""
    comma = len(group) == 2 and text[group[0].end() : group[1].start()].strip() == ","
    return comma and bool(re.match(r"instead|rather|unlike|other|as opposed", negation, re.IGNORECASE))


def _rejects_all(rejected: re.Match[str]) -> bool:
    """`A and B are wrong` is about both, `B, A is wrong` about the last."""
    verb = rejected["verb"] or rejected["verb2"]
    return not verb or bool(_PLURAL.match(verb))


def _mention(text: str, match: re.Match[str], group: int) -> Mention:
    start, end = match.span()
    before = _before(text, start)
    alone = _ALONE_BEFORE.search(before) and _ALONE_AFTER.match(text, end)
    begins = start <= len(before) and not _CALLED.sub("", before).strip(" \n\"'“‘「『《【([{<|.…—–-")
    asked = bool(_ASKED.match(text, end))
    return Mention(
        letter=match[1].upper(),
        start=start,
        end=end,
        group=group,
        stated=bool(alone or _CONFIRMED.match(text, end)),
        head=bool(begins and _HEAD_END.match(text, end)),
        reasoned=bool(_REASON.match(text, end)),
        label=bool(_LABEL.match(text, end)),
        asked=asked,
    )


def _spoken(text: str, letters: Sequence[str]) -> Iterator[Mention]:
    """Letters by their names, only where nothing else can be meant: alone, after a cue, or no word of their own."""
    for number, match in enumerate(_SPOKEN_WORD.finditer(text)):
        word, letter = match[0].casefold(), _SPOKEN[match[0].casefold()]
        before = _before(text, match.start())
        begins = match.start() <= len(before) and not _FILLERS.sub("", before).strip(" \n\"'(,.…-")
        alone = begins and not text[match.end() :].strip(" \n\"').!?。")
        begins = begins and word in _NO_WORD_BUT_LETTERS
        cued = _STATED.search(before) or _CALLED.search(before)
        ends = _SPOKEN_END.match(text, match.end())
        if letter in letters and ends and (alone or begins or cued) and not _NEGATED.search(before):
            yield Mention(letter=letter, start=match.start(), end=match.end(), group=-1 - number, stated=True)
