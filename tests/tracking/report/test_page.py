"""The page: what a model said stays text, files are named by digests, tables come in three forms."""

from pathlib import Path

import pytest

from tests.tracking.report.rows import loaded, rows
from tracking.report import general
from tracking.report.content import Number, Sample, Section, Sound, Table
from tracking.report.figures import bars, heat_map, scatter
from tracking.report.page import write

HOSTILE = '</blockquote><script>alert("x")</script><img src=x onerror=alert(1)>'


def fetch(uri: str) -> bytes:
    if "gone" in uri:
        raise FileNotFoundError(uri)
    return b"fLaC" + uri.encode()


def page(tmp_path: Path, *sections: Section, **options: bool) -> str:
    return write(tmp_path, "T", "from a <store>", sections, fetch, **options).read_text()


def sample(text: str = "hello", uri: str = "speech/ab/x.flac") -> Section:
    sound = Sound(label="reply", uri=uri)
    return Section(
        title="S", samples=(Sample(title=HOSTILE, facts=(("item", HOSTILE),), text=text, sounds=(sound,)),)
    )


def test_a_hostile_transcript_stays_text(tmp_path: Path) -> None:
    table = Table(
        name="t", title=HOSTILE, columns=(HOSTILE,), rows=((HOSTILE,), (Number(value=None, note=HOSTILE),))
    )
    text = page(tmp_path, sample(HOSTILE), Section(title=HOSTILE, text=HOSTILE, tables=(table,)))
    assert "<script>alert" not in text and "<img src=x" not in text
    assert "&lt;script&gt;alert" in text


def test_sounds_lie_beside_the_page_under_names_of_ours_or_inside_it(tmp_path: Path) -> None:
    text = page(tmp_path / "beside", sample(uri="speech/../../etc/x.flac"))
    (sound,) = (tmp_path / "beside" / "audio").iterdir()
    assert f'src="audio/{sound.name}"' in text and sound.stem.isalnum()
    inside = page(tmp_path / "inside", sample(), embed_audio=True)
    assert "data:audio/flac;base64," in inside and not (tmp_path / "inside" / "audio").exists()


def test_a_sound_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    text = page(tmp_path, sample(uri="speech/gone.flac"))
    assert "not in the store" in text and "<audio" not in text.split("<main>")[1]


def test_empty_sections_are_left_out(tmp_path: Path) -> None:
    assert "Nothing here" not in page(tmp_path, Section(title="Nothing here"), sample())


def test_tables_are_written_as_csv_and_markdown_with_intervals_and_reasons(tmp_path: Path) -> None:
    rows_ = (
        ("a|b", Number(value=1.234, ci_low=1, ci_high=2, flag="!")),
        ("c", Number(value=None, note="unavailable: x")),
    )
    page(tmp_path, Section(title="S", tables=(Table(name="t", title="T", columns=("m", "v"), rows=rows_),)))
    assert (tmp_path / "tables" / "t.csv").read_text().splitlines() == [
        "m,v,v low,v high,v note",
        "a|b,1.234,1,2,",
        "c,,,,unavailable: x",
    ]
    markdown = (tmp_path / "tables" / "t.md").read_text()
    assert "| a\\|b | 1.23 [1.00, 2.00] ! |" in markdown and "| c | - (unavailable: x) |" in markdown


def test_figures_are_the_same_bytes_again_and_read_in_the_dark() -> None:
    numbers = [Number(value=1.0, ci_low=0.5, ci_high=1.5), Number(value=None)]
    for draw in (
        lambda: bars("b", ["x", "y"], {"s": numbers}, "points"),
        lambda: scatter("s", {"m": (1.0, 2.0)}, ("x", "y")),
        lambda: heat_map("h", ["r"], ["a", "b"], [[1.0, None]]),
    ):
        assert draw() == draw()
        assert "currentColor" in draw().svg and "#000000" not in draw().svg and draw().svg.startswith("<svg")


def test_contrasts_of_one_table_are_corrected_together() -> None:
    up = {f"u{n}": 1.0 for n in range(8)}
    flat = dict.fromkeys(up, 0.0)
    data = loaded(
        rows("judge/c4", flat, prompt="p1")
        + rows("judge/c4", up, prompt="p2")
        + rows("judge/c4", up, prompt="p3")
    )
    (table,) = general.contrasts(data, "prompt", "Prompts").tables
    p = table.columns.index("p (Holm)")
    assert [row[p].value for row in table.rows] == pytest.approx([3 * 2 / 256, 3 * 2 / 256, 1.0])
    assert table.rows[0][table.columns.index("second - first")].flag == "*"


def test_conditions_are_held_against_clean_and_voices_of_people_against_synthetic_ones() -> None:
    data = loaded(
        rows("judge/c4", {"a": 4, "b": 4})
        + rows("judge/c4", {"a": 3, "b": 3}, condition="white_0db")
        + rows("judge/c4", {"a": 2, "b": 2}, source="human")
    )
    (conditions,) = general.contrasts(data, "condition", "Conditions").tables
    assert [row[3:5] for row in conditions.rows] == [("clean", "white_0db")]
    (voices,) = general.voices(data).tables
    assert voices.rows[0][voices.columns.index("second - first")].value == -2


def test_breakdowns_never_pool_people_and_machines() -> None:
    data = loaded(
        rows("judge/c4", {"a": 4}, style="target")
        + rows("judge/c4", {"a": 2}, style="neutral", source="human")
    )
    (table,) = general.breakdown(data).tables
    assert table.name == "by_voice_style"
    assert sorted((row[3], row[4], row[5].value) for row in table.rows) == [
        ("human", "neutral", 2),
        ("synthetic", "target", 4),
    ]
