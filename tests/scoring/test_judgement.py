"""What judges write, and the points in it: a kind a case."""

import pytest

from scoring.judgement import JudgementError, parse

KEYS = ("context_fit", "voice_relevance")
WANTED = {"context_fit": 4, "voice_relevance": 2}
PLAIN = '{"reason": "ok", "context_fit": 4, "voice_relevance": 2}'


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN,
        f"```json\n{PLAIN}\n```",
        f"Here is my assessment: {PLAIN} I hope this helps.",
        f"<think>perhaps {{'context_fit': 1}} or 5</think>\n{PLAIN}",
        'First try {"context_fit": 1}. Then: ' + PLAIN,
        '{"context_fit": "4", "voice_relevance": 2.0}',
        '{"context_fit": "4/5", "voice_relevance": "2 / 5"}',
        '{"contextfit": 4, "voice_relevence": 2}',
        '{"Context Fit": 4, "Voice Relevance": 2}',
        '{"context_fit_score": 4, "voice_relevance_score": 2, "context_fit_resaon": "fits"}',
        '{"scores": {"context_fit": 4, "voice_relevance": 2}, "reason": "x"}',
        '{broken {"context_fit": 4, "voice_relevance": 2}',
    ],
)
def test_points_are_found_however_they_are_wrapped(answer: str) -> None:
    assert parse(answer, KEYS) == WANTED


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "empty answer"),
        ("<think>hm</think>", "empty answer"),
        ("I would give it a 4 and a 2.", "no JSON object"),
        ('{"context_fit": 4', "no JSON object"),
        ("[4, 2]", "no JSON object"),
        ('{"context_fit": 4}', "no points for voice_relevance"),
        ('{"fit": 4, "relevance": 2}', "no points for context_fit, voice_relevance"),
        ('{"context_fit": 0, "voice_relevance": 2}', "out of range"),
        ('{"context_fit": 6, "voice_relevance": 2}', "out of range"),
        ('{"context_fit": -4, "voice_relevance": 2}', "out of range"),
        ('{"context_fit": 3.5, "voice_relevance": 2}', "no whole number"),
        ('{"context_fit": "good", "voice_relevance": 2}', "no whole number"),
        ('{"context_fit": null, "voice_relevance": 2}', "no whole number"),
        ('{"context_fit": true, "voice_relevance": 2}', "no whole number"),
        ('{"context_fit": NaN, "voice_relevance": 2}', "no whole number"),
        ('{"context_fit": 1e999, "voice_relevance": 2}', "no whole number"),
        ('{"context_fit": [4], "voice_relevance": 2}', "no whole number"),
    ],
)
def test_an_answer_without_valid_points_is_an_error_with_its_kind(answer: str, why: str) -> None:
    with pytest.raises(JudgementError, match=why):
        parse(answer, KEYS)
