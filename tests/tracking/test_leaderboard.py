"""Lines, flags and footnotes: python -m pytest tests/tracking/test_leaderboard.py."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from farm.metrics import CellSummary, summarise
from farm.records import ScorerRecord
from farm.types import MetricSpec
from tests.farm.cells import ACCURACY, MOS, failed, record, replies_table, reply, score, scores_table
from tracking import leaderboard

Rows = Sequence[Mapping[str, Any]]
COMMAND = "no weights; python scripts/fetch_weights.py nisqa"


def summaries(replies: Rows, scores: Rows, **changes: Any) -> tuple[CellSummary, ...]:
    return summarise(record(**changes), replies_table(replies), scores_table(scores))


def printed(found: Sequence[CellSummary]) -> str:
    out = io.StringIO()
    leaderboard.render(leaderboard.rows(found), Console(file=out))
    return out.getvalue()


TWO = [reply("t1", "a", "u"), reply("t2", "b", "v")]


def test_line_has_value_interval_and_counts() -> None:
    text = printed(summaries(TWO, [score("t1", value=2.0), score("t2", value=4.0)], planned=2))
    assert "3.00 ± 1.00" in text
    assert "2/2" in text
    assert leaderboard.FLAG not in text
    assert "\x1b" not in text


def test_unavailable_is_shown_with_the_command_that_brings_the_weights() -> None:
    text = printed(summaries(TWO, [score(t, status="unavailable", reason=COMMAND) for t in ("t1", "t2")]))
    assert "unavailable [1]" in text
    assert f"[1] {MOS}: unavailable: {COMMAND}" in text


def test_coverage_below_the_floor_is_flagged() -> None:
    text = printed(summaries(TWO, [score("t1", value=2.0)], planned=2))
    assert "2.00 (50%)!" in text
    assert "no verdict" in text


def test_failures_are_counted_and_explained() -> None:
    text = printed(summaries([*TWO, failed("t3", "c", "w")], [], planned=3))
    assert "failed: 1 model_error" in text


def test_voices_stand_on_lines_of_their_own() -> None:
    replies = [
        reply("t1", "a", "u", factors={"voice_source": "human"}),
        reply("t2", "b", "v", factors={"voice_source": "synthetic"}),
    ]
    text = printed(summaries(replies, [score("t1", value=2.0), score("t2", value=4.0)], planned=2))
    human, synthetic = (
        next(ln for ln in text.splitlines() if voice in ln) for voice in ("human", "synthetic")
    )
    assert "2.00" in human and "4.00" in synthetic
    assert "3.00" not in text


def test_csv_and_markdown_carry_the_same_cells() -> None:
    lines = leaderboard.rows(summaries(TWO, [score("t1", value=2.0), score("t2", value=4.0)], planned=2))
    (row,) = csv.DictReader(io.StringIO(leaderboard.csv_text(lines)))
    assert (row[MOS], row[f"{MOS}_ci_low"], row[f"{MOS}_coverage"]) == ("3.0", "2.0", "1.0")
    assert (row["done"], row["planned"], row["cell_id"]) == ("2", "2", "c0")
    assert "| 3.00 ± 1.00 |" in leaderboard.markdown(lines)


def test_nothing_to_show_is_an_empty_table() -> None:
    assert leaderboard.rows([]) == []
    assert leaderboard.markdown([]).startswith("| model |")


def test_metrics_that_say_so_stand_beside_the_first_of_their_scorer() -> None:
    specs = (
        MetricSpec(name=ACCURACY, aggregate="rate", better="higher"),
        MetricSpec(name="choice/chance", aggregate="mean", better="neither", headline=True),
        MetricSpec(name="choice/hidden", aggregate="mean", better="higher"),
    )
    choice = ScorerRecord(name="choice", version="1", weights="", needs="text", metrics=specs)
    chance = [{**score("t1", ACCURACY, 0.25, score_id="x"), "name": "choice/chance"}]
    text = printed(summaries(TWO[:1], [score("t1", ACCURACY, 1.0), *chance], planned=1, scorers=(choice,)))
    assert "choice/accuracy" in text and "choice/chance" in text and "0.25" in text
    assert "choice/hidden" not in text


def test_each_task_has_a_table_with_its_own_metrics() -> None:
    mos, choice = record().scorers[:2]
    talk = summaries(TWO, [score("t1", value=2.0), score("t2", value=4.0)], planned=2, scorers=(mos,))
    quiz = summaries(TWO, [score("t1", ACCURACY, 1.0)], planned=2, scorers=(choice,), task="toybench.quiz")
    text = printed([*talk, *quiz])
    first, second = text.split("toybench.quiz\n")
    assert first.startswith("toybench.talk") and MOS in first and ACCURACY not in first
    assert ACCURACY in second and MOS not in second
    lines = leaderboard.rows([*talk, *quiz])
    assert "**toybench.quiz**" in leaderboard.markdown(lines)
    by_task = {row["task"]: row for row in csv.DictReader(io.StringIO(leaderboard.csv_text(lines)))}
    assert by_task["toybench.talk"][MOS] == "3.0" and by_task["toybench.quiz"][MOS] == ""


def test_voice_styles_stand_on_lines_of_their_own() -> None:
    replies = [
        reply(f"t{n}", f"i{n}", "u", factors={"voice_style": s}) for n, s in enumerate(("neutral", "target"))
    ]
    text = printed(summaries(replies, [score("t0", value=1.0), score("t1", value=4.0)], planned=2))
    target, neutral = text.splitlines()[1:3]
    assert "target" in target and "4.00" in target
    assert "neutral" in neutral and "1.00" in neutral
