"""BLEU, ROUGE-L and METEOR against what the libraries themselves say, and against hand-computed values."""

from pathlib import Path

import pytest

from farm import statistics
from scoring.overlap import Meteor, Overlap
from tests.scoring.texts import REPLIES, check_what_cannot_be_scored, scored, value

WEIGHTS = Path(__file__).parents[2] / "weights"
SAID = "Oh no, I am sorry. Do you want to talk?"


@pytest.fixture(scope="module")
def overlap() -> Overlap:
    if not (WEIGHTS / "nltk-punkt").is_dir():
        pytest.skip("no Punkt model; python scripts/fetch_demo_weights.py")
    return Overlap(words={"path": str(WEIGHTS / "nltk-punkt")})


@pytest.fixture(scope="module")
def meteor() -> Meteor:
    if not (WEIGHTS / "wordnet").is_dir():
        pytest.skip("no WordNet; python scripts/fetch_demo_weights.py --only wordnet")
    return Meteor(wordnet={"path": str(WEIGHTS / "wordnet")})


def test_sentence_bleu_is_the_published_call(overlap: Overlap) -> None:
    from nltk.tokenize import word_tokenize
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    words = word_tokenize(SAID.lower())
    expected = sentence_bleu(
        [word_tokenize(REPLIES[0].lower())],
        words,
        weights=(0.25, 0.25, 0.25, 0.25),
        smoothing_function=SmoothingFunction().method1,
    )
    assert value(overlap, SAID, "text/bleu_sentence_mean_first") == pytest.approx(100 * expected)
    assert "sorry" in words and "." in words, "a sentence's end is a word of its own"


def test_more_references_can_only_help(overlap: Overlap) -> None:
    (scores,) = scored(overlap, SAID)
    for name in ("text/bleu_sentence_mean", "text/rouge_l"):
        assert scores[name].value > scores[f"{name}_first"].value  # type: ignore[operator]


def test_a_reference_itself_is_perfect(overlap: Overlap) -> None:
    (scores,) = scored(overlap, REPLIES[1])
    assert scores["text/bleu_sentence_mean"].value == pytest.approx(100)
    assert scores["text/rouge_l"].value == pytest.approx(1)


def test_rouge_l_by_hand(overlap: Overlap) -> None:
    found = value(overlap, "the dog runs", "text/rouge_l", references=["the brown dog runs home"])
    assert found == pytest.approx(2 * (3 / 3) * (3 / 5) / (3 / 3 + 3 / 5))


def test_corpus_bleu_is_sacrebleus(overlap: Overlap) -> None:
    from sacrebleu.metrics.bleu import BLEU

    said = [SAID, "That must be very hard.", "", "I am so sorry to hear it."]
    labels = [scores["text/bleu_corpus"].label or "" for scores in scored(overlap, *said)]
    counts = [[float(count) for count in label.split()] for label in labels]
    found = statistics.bleu(counts, ["a", "b", "c", "d"])
    assert found.value == pytest.approx(BLEU().corpus_score(said, [[text] * 4 for text in REPLIES]).score)
    assert found.ci_low is not None and found.ci_low <= found.value <= (found.ci_high or 0)


def test_an_empty_reply_is_0_everywhere(overlap: Overlap, meteor: Meteor) -> None:
    for scorer in (overlap, meteor):
        for text in ("", "   ", "<think>never ended"):
            (scores,) = scored(scorer, text)
            assert {score.value for score in scores.values()} == {0.0}
            assert all(score.status == "ok" for score in scores.values())


@pytest.mark.parametrize("text", ["?!", "哈哈", "a" * 5000, "\u00a0", "so " * 2000])
def test_odd_replies_have_finite_values(overlap: Overlap, meteor: Meteor, text: str) -> None:
    for scorer in (overlap, meteor):
        assert all(score.status == "ok" for score in scored(scorer, text)[0].values())


def test_meteor_knows_synonyms_and_counts_recall_most(meteor: Meteor) -> None:
    gold = ["the car runs home"]
    same, alike, other = (
        value(meteor, f"the {thing} runs home", "text/meteor", references=gold)
        for thing in ("car", "auto", "sofa")
    )
    assert same == alike > other > 0, "NLTK looks for synonyms of stems, so not every one is found"
    short = value(meteor, "the", "text/meteor", references=gold)
    # P = 1, R = 1/4, one chunk of one match: F = 10PR / (R + 9P), penalty 0.5.
    assert short == pytest.approx(0.5 * (10 * 1 * 0.25) / (0.25 + 9 * 1))


def test_what_cannot_be_scored_says_why(overlap: Overlap, meteor: Meteor) -> None:
    check_what_cannot_be_scored(overlap, Overlap.names, "references")
    check_what_cannot_be_scored(meteor, Meteor.names, "references")


@pytest.mark.parametrize(("scorer", "argument"), [(Overlap, "words"), (Meteor, "wordnet")])
def test_missing_data_is_unavailable_with_the_command(tmp_path: Path, scorer: type, argument: str) -> None:
    settings = {argument: {"path": str(tmp_path / "none"), "made_by": "python scripts/fetch_demo_weights.py"}}
    (scores,) = scored(scorer(**settings), SAID)
    assert {score.status for score in scores.values()} == {"unavailable"}
    assert all("python scripts/fetch_demo_weights.py" in score.reason for score in scores.values())
    assert scorer.weights_fingerprint(settings) == ""  # type: ignore[attr-defined]
