"""Which trials come first: python -m pytest tests/tracking/test_samples.py."""

from tests.farm.cells import ACCURACY, MOS, failed, record, reply, score
from tracking import samples

REPLIES = [
    reply("t1", "a", "u", factors={"voice_style": "fast"}),
    reply("t2", "b/1", "v"),
    reply("t3", "c", "w"),
    failed("t4", "d", "x"),
]
SCORES = [score("t1", value=4.0), score("t2", value=1.5), score("t3", status="failed", reason="silent")]


def test_failed_trials_then_the_worst_scores_then_the_unscored() -> None:
    rows = samples.item_rows(record(), REPLIES, SCORES)
    assert [row["trial_id"] for row in rows] == ["t4", "t2", "t1", "t3"]
    assert [row["status"] for row in rows] == ["model_error", "ok", "ok", "ok"]
    assert (rows[0]["message"], rows[3]["message"]) == ("boom", "failed: silent")
    assert rows[2]["factor.voice_style"] == "fast"
    assert list(rows[0])[:2] == ["item_key", "text"]


def test_worst_speech_is_named_by_place_value_and_item() -> None:
    rows = samples.item_rows(record(), REPLIES, SCORES)
    files = samples.worst_speech(record(), rows, 5, lambda uri: uri.encode())
    assert files == {
        "worst/1_nisqa_mos_1.50_b_1_r0.flac": b"speech/t2.flac",
        "worst/2_nisqa_mos_4.00_a_r0.flac": b"speech/t1.flac",
    }


def test_without_speech_scores_the_first_other_metric_ranks() -> None:
    rows = samples.item_rows(record(), REPLIES, [score("t1", ACCURACY, 1.0), score("t2", ACCURACY, 0.0)])
    assert [row["trial_id"] for row in rows][:3] == ["t4", "t2", "t1"]
    assert rows[1][MOS] is None
