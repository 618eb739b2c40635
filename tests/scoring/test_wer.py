"""Two word error rates by hand-computed values: python -m pytest tests/scoring/test_wer.py."""

from pathlib import Path

import pytest

from scoring.wer import WordErrors
from tests.scoring.texts import WORDS, check_what_cannot_be_scored, scored, value

SPELLINGS = Path(__file__).parents[2] / "weights" / "whisper-normalizer" / "english.json"
MEAN = "text/wer_utterance_mean"


@pytest.fixture(scope="module")
def wer() -> WordErrors:
    if not SPELLINGS.is_file():
        pytest.skip("no table of spellings; python scripts/fetch_demo_weights.py")
    return WordErrors(spellings={"path": str(SPELLINGS)}, prefixes=["The audio text is"])


def ratio(wer: WordErrors, text: str, **gold: str) -> tuple[float | None, float | None]:
    (scores,) = scored(wer, text, **gold)
    return scores["text/wer"].numerator, scores["text/wer"].denominator


def test_the_published_recipe_counts_case_and_punctuation(wer: WordErrors) -> None:
    assert value(wer, WORDS, MEAN) == 0.0
    assert value(wer, "The cat sat", MEAN, transcript="the cat sat.") == pytest.approx(2 / 3)


def test_the_standard_one_normalises_both_sides(wer: WordErrors) -> None:
    said = "i got my exam back and mister brown said it is 21 points"
    assert ratio(wer, said) == (0.0, 13.0)
    assert value(wer, said, MEAN) > 0.3
    assert ratio(wer, "the color is gray", transcript="The colour is grey!") == (0.0, 4.0)


def test_substitutions_deletions_and_insertions_count(wer: WordErrors) -> None:
    assert ratio(wer, "red blew green cat", transcript="red blue green") == (2.0, 3.0)
    assert value(wer, "a b c d e f", MEAN, transcript="a") == 5.0


def test_an_empty_reply_misses_every_word(wer: WordErrors) -> None:
    assert value(wer, "", MEAN) == 1.0
    assert ratio(wer, "", transcript="red blue green") == (3.0, 3.0)


def test_a_reference_that_is_only_filler_weighs_nothing(wer: WordErrors) -> None:
    assert ratio(wer, "hmm", transcript="Hmm.") == (0.0, 0.0)


@pytest.mark.parametrize(
    "text",
    [
        "The audio text is 'Good morning.'",
        "the audio text is: Good morning.",
        "The audio text is <Good morning.>",
        'The audio text is "Good morning.".',
        "<think>what?</think>Good morning.",
    ],
)
def test_what_a_model_was_told_to_put_before_is_taken_off(wer: WordErrors, text: str) -> None:
    assert value(wer, text, MEAN, transcript="Good morning.") == 0.0


def test_a_transcript_that_begins_like_a_prefix_keeps_its_words(wer: WordErrors) -> None:
    said = "The audio text isn't clear"
    assert value(WordErrors(spellings={"path": str(SPELLINGS)}), said, MEAN, transcript=said) == 0.0


def test_what_cannot_be_scored_says_why(wer: WordErrors) -> None:
    check_what_cannot_be_scored(wer, WordErrors.names, "transcript")


def test_without_the_table_the_published_recipe_still_counts(tmp_path: Path) -> None:
    scorer = WordErrors(spellings={"path": str(tmp_path / "none.json"), "made_by": "python scripts/fetch.py"})
    (scores,) = scored(scorer, WORDS)
    assert (
        scores["text/wer"].status == "unavailable" and "python scripts/fetch.py" in scores["text/wer"].reason
    )
    assert scores[MEAN].value == 0.0
    assert WordErrors.weights_fingerprint({"spellings": {"path": str(tmp_path / "none.json")}}) == ""
