"""SemSim and BERTScore on a small real encoder: close texts are closer, and scores do not depend on their batch."""

from pathlib import Path

import pytest

from scoring.bertscore import BertScore, baseline_f1
from scoring.semsim import SemSim
from tests.scoring.texts import REPLIES, WORDS, check_what_cannot_be_scored, scored, value

MINILM = Path(__file__).parents[2] / "weights" / "all-minilm-l6-v2"
F1, RESCALED = "text/bertscore_f1", "text/bertscore_f1_rescaled"
MISSING = {"path": "/nowhere/at/all", "made_by": "huggingface-cli download it"}


@pytest.fixture(scope="module")
def minilm() -> dict[str, str]:
    if not MINILM.is_dir():
        pytest.skip("no small encoder; python scripts/fetch_demo_weights.py")
    return {"path": str(MINILM)}


@pytest.fixture(scope="module")
def semsim(minilm: dict[str, str]) -> SemSim:
    return SemSim(checkpoint=minilm, note="by a small encoder", prefixes=["The audio text is"])


@pytest.fixture(scope="module")
def bertscore(minilm: dict[str, str]) -> BertScore:
    return BertScore(checkpoint=minilm, layer=6, baseline="bert-base-uncased")


def test_semsim_is_the_cosine_of_the_encoder(semsim: SemSim, minilm: dict[str, str]) -> None:
    from sentence_transformers import SentenceTransformer

    said = "I got my test results."
    a, b = SentenceTransformer(minilm["path"]).encode([said, WORDS])
    expected = float(a @ b / (a @ a) ** 0.5 / (b @ b) ** 0.5)
    assert value(semsim, said, "text/semsim") == pytest.approx(expected, abs=1e-5)


def test_close_meanings_are_closer(semsim: SemSim) -> None:
    same, close, far, empty = (
        scores["text/semsim"].value
        for scores in scored(semsim, WORDS, "My exam is back.", "Bananas grow fast.", "")
    )
    assert same == pytest.approx(1, abs=1e-4)
    assert same > close > far and empty == 0.0  # type: ignore[operator]
    assert value(semsim, f"The audio text is '{WORDS}'", "text/semsim") == pytest.approx(1, abs=1e-4)
    assert scored(semsim, WORDS)[0]["text/semsim"].reason == "by a small encoder"


def test_bertscore_is_the_librarys_best_over_references(bertscore: BertScore, minilm: dict[str, str]) -> None:
    from bert_score import score

    said = "I'm sorry, that sounds hard."
    _, _, each = score([said] * len(REPLIES), list(REPLIES), model_type=minilm["path"], num_layers=6)
    assert value(bertscore, said, F1) == pytest.approx(float(each.max()), abs=1e-4)


def test_rescaled_is_a_metric_of_its_own(bertscore: BertScore) -> None:
    (scores,) = scored(bertscore, "I am sorry.")
    low = baseline_f1("bert-base-uncased", 6)
    raw = scores[F1].value or 0.0
    assert scores[RESCALED].value == pytest.approx((raw - low) / (1 - low))


def test_without_a_baseline_there_is_no_rescaled_value(minilm: dict[str, str]) -> None:
    assert list(scored(BertScore(checkpoint=minilm, layer=6), "Hi there.")[0]) == [F1]


@pytest.mark.parametrize(
    ("baseline", "layer", "message"),
    [("bert-huge", 9, "bert-score has none"), ("bert-base-uncased", 99, "layers 0 to")],
)
def test_a_baseline_that_is_not_there_is_refused(baseline: str, layer: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BertScore.check({"baseline": baseline, "layer": layer})


def test_an_empty_reply_is_0(bertscore: BertScore) -> None:
    first, second = scored(bertscore, "", "I am sorry.")
    assert {score.value for score in first.values()} == {0.0}
    assert (second[F1].value or 0) > 0.5


def test_scores_do_not_depend_on_the_batch(bertscore: BertScore, semsim: SemSim) -> None:
    texts = ("Yes.", "I am so very sorry that you have to go through this, my dear friend, " * 3, "No")
    for scorer, name in ((bertscore, F1), (semsim, "text/semsim")):
        together = [scores[name].value for scores in scored(scorer, *texts)]
        alone = [value(scorer, text, name) for text in texts]
        assert together == pytest.approx(alone, abs=1e-4)


def test_what_cannot_be_scored_says_why(bertscore: BertScore, semsim: SemSim) -> None:
    check_what_cannot_be_scored(bertscore, (F1, RESCALED), "references")
    check_what_cannot_be_scored(semsim, SemSim.names, "transcript")


def test_missing_weights_are_unavailable_with_the_command() -> None:
    scorers = SemSim(checkpoint=MISSING), BertScore(checkpoint=MISSING, layer=9, baseline="bert-base-uncased")
    for scorer in scorers:
        (scores,) = scored(scorer, "Hi.")
        assert {score.status for score in scores.values()} == {"unavailable"}
        assert all("huggingface-cli download it" in score.reason for score in scores.values())
        assert type(scorer).weights_fingerprint({"checkpoint": MISSING}) == ""
