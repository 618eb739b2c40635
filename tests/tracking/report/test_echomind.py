"""EchoMind's analyses against values computed by hand."""

import numpy as np
import pytest

from tests.tracking.report.rows import loaded, rows, said
from tracking.report import echomind
from tracking.report.content import Number, Section

UNDERSTANDING = "echomind.understanding"


def cell(section: Section, row: int, column: str, table: int = 0) -> object:
    found = section.tables[table]
    return found.rows[row][found.columns.index(column)]


def value(section: Section, row: int, column: str, table: int = 0) -> float | None:
    number = cell(section, row, column, table)
    assert isinstance(number, Number)
    return number.value


def test_table_5_shows_the_prompt_with_the_highest_c4_and_ves_over_target_speech() -> None:
    data = loaded(
        rows("judge/c4", {"a": 2, "b": 4}, prompt="p1")
        + rows("judge/ves", {"a": 2, "b": 2}, prompt="p1")
        + rows("judge/c4", {"a": 3, "b": 4}, prompt="p3")
        + rows("judge/ves", {"a": 3, "b": 1}, prompt="p3")
        + rows("judge/c4", {"a": 5, "b": 5}, prompt="p1", style="neutral")
        + rows("choice/accuracy", {"a#1": 1, "a#2": 0, "b#1": 1}, UNDERSTANDING, prompt="mcq")
    )
    section = echomind.table_5(data)
    assert section.tables[0].rows[0][:3] == ("m", "synthetic", "p3")
    assert value(section, 0, "C4") == pytest.approx(3.5)
    assert value(section, 0, "VoiceACC") == pytest.approx(75)  # script a 1/2, script b 1/1
    assert [r[2] for r in section.tables[1].rows] == ["p1", "p3"]
    assert value(section, 0, "C4", table=1) == pytest.approx(3.0)


def test_published_rows_stand_beside_ours_marked_as_published_and_a_dash_is_not_applicable() -> None:
    section = echomind.table_5(loaded(rows("judge/c4", {"a": 2}) + rows("judge/ves", {"a": 2})))
    published = {str(r[0]): r for r in section.tables[0].rows if str(r[0]).endswith("(published)")}
    assert len(published) == 14
    columns = section.tables[0].columns
    assert published["GPT-4o-Audio (published)"][columns.index("C4")].value == 3.42
    ves = published["DeSTA2.5-Audio (published)"][columns.index("VES")]
    assert ves.value is None and ves.note.startswith("not_applicable")


def test_levels_are_correlated_over_models() -> None:
    accuracy, points = {"m1": 0.2, "m2": 0.5, "m3": 0.9}, {"m1": 1.0, "m2": 3.0, "m3": 2.0}
    data = loaded(
        [r for m, v in accuracy.items() for r in rows("choice/accuracy", {"a": v}, UNDERSTANDING, model=m)]
        + [r for m, v in points.items() for r in rows("judge/c4", {"a": v}, model=m)]
    )
    section = echomind.levels_correlate(data)
    assert section.tables[0].rows[0][:2] == ("voice understanding", "C4")
    assert value(section, 0, "Spearman") == pytest.approx(0.5)  # ranks 1 2 3 and 1 3 2


def test_c4_is_split_by_whether_the_same_recordings_questions_were_answered_right() -> None:
    """Script a (C4 4) answered 1 of 2, script b (C4 2) 0 of 1, script c (C4 5) 1 of 1."""
    data = loaded(
        rows("judge/c4", {"a": 4, "b": 2, "c": 5})
        + rows("choice/accuracy", {"a#1": 1, "a#2": 0, "b#1": 0, "c#1": 1}, UNDERSTANDING)
    )
    section = echomind.heard_and_said(data)
    assert value(section, 0, "C4 where wrong") == pytest.approx((4 + 2) / 2)
    assert value(section, 0, "C4 where right") == pytest.approx((4 + 5) / 2)
    assert value(section, 0, "right - wrong") == pytest.approx(1.5)
    assert cell(section, 0, "scripts") == 3


def test_prompts_are_compared_pair_by_pair_within_a_model() -> None:
    data = loaded(
        rows("judge/c4", {"a": 2, "b": 3}, prompt="p1") + rows("judge/c4", {"a": 3, "b": 5}, prompt="p3")
    )
    section = echomind.prompt_sensitivity(data)
    assert value(section, 0, "second - first") == pytest.approx(1.5)
    assert len(section.figures) == 1 and "p3: m 4.00" in section.figures[0].alt


def test_the_gain_of_being_told_is_paired_with_the_default_arm() -> None:
    data = loaded(
        rows("judge/c4", {"a": 2, "b": 3}) + rows("judge/c4", {"a": 4, "b": 4, "c": 5}, arm={"cue": "oracle"})
    )
    section = echomind.oracle_gain(data)
    assert value(section, 0, "second - first") == pytest.approx(1.5)
    assert cell(section, 0, "unpaired") == 1


def test_divergence_between_voices_is_less_that_between_repeats() -> None:
    """Script a: voices share no word (1), repeats half of theirs (0.5); script b has one voice and no part in it."""
    replies = [
        said("one two", "a", "target", 0),
        said("one three", "a", "target", 1),
        said("four five", "a", "neutral", 0),
        said("four six", "a", "neutral", 1),
        said("seven", "b", "target", 0),
    ]
    section = echomind.reply_divergence(loaded([], replies))
    assert value(section, 0, "between voices") == pytest.approx(1.0)
    assert value(section, 0, "between repeats") == pytest.approx(0.5)
    assert value(section, 0, "contrast/reply_divergence") == pytest.approx(0.5)
    once = echomind.reply_divergence(loaded([], [r for r in replies if r["trial_id"].endswith("/0/said")]))
    assert value(once, 0, "contrast/reply_divergence") is None


def test_no_numbers_no_sections() -> None:
    data = loaded(rows("quality/nisqa_mos", {"a": 3}))
    shown = [s.title for s in echomind.sections(data) if not s.empty]
    assert shown == ["EchoMind, Table 5"]
    assert np.isfinite(value(echomind.table_5(data), 0, "NISQA"))  # type: ignore[arg-type]
