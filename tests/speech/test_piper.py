import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from farm.types import Failure, Waveform
from speech.piper import MAX_PHONEMES, PEAK, Piper, pieces
from tests.checkpoints import ROOT, demo_weights

TEXTS = ["I lost my keys again. What should I do?", "Slightly smiling, you say?", "Good night."]
DIGEST_ELSEWHERE = """
import hashlib, json, sys
from speech.piper import Piper
spoken = Piper(checkpoint={"path": sys.argv[1]}).speak(json.loads(sys.argv[2]))
print(hashlib.sha256(b"".join(w.samples.tobytes() for w in spoken)).hexdigest())
"""


@pytest.fixture(scope="module")
def voice() -> Piper:
    return Piper(checkpoint=demo_weights("piper-joe"))


def spoken(voice: Piper, texts: list[str]) -> list[Waveform]:
    found = voice.speak(texts)
    assert all(isinstance(waveform, Waveform) for waveform in found), found
    return [waveform for waveform in found if isinstance(waveform, Waveform)]


def test_speech_has_the_voices_rate_and_leaves_headroom(voice: Piper) -> None:
    for waveform in spoken(voice, TEXTS):
        assert waveform.sample_rate_hz == voice.sample_rate_hz == 22_050
        assert waveform.samples.dtype == np.float32
        assert np.abs(waveform.samples).max() == pytest.approx(PEAK, abs=1e-4)
        assert 0.3 < waveform.seconds < 6


def test_the_same_text_is_the_same_speech_whatever_it_is_batched_with(voice: Piper) -> None:
    together = spoken(voice, TEXTS)
    for text, waveform in zip(TEXTS, together, strict=True):
        assert np.array_equal(spoken(voice, [text])[0].samples, waveform.samples)


def test_the_same_text_is_the_same_speech_in_another_process_with_other_threads(voice: Piper) -> None:
    here = hashlib.sha256(b"".join(w.samples.tobytes() for w in spoken(voice, TEXTS))).hexdigest()
    import json

    for threads in ("1", "2"):
        command = [
            sys.executable,
            "-c",
            DIGEST_ELSEWHERE,
            demo_weights("piper-joe")["path"],
            json.dumps(TEXTS),
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == here, f"OMP_NUM_THREADS={threads}"


def test_a_text_that_cannot_be_spoken_is_a_failure_and_its_neighbours_are_spoken(voice: Piper) -> None:
    found = voice.speak(["", "Good night.", "😀😀", "..."])
    assert [isinstance(result, Failure) for result in found] == [True, False, True, True]
    assert isinstance(found[2], Failure)
    assert found[2].kind == "input_error"
    assert "nothing to speak" in found[2].message


def test_a_sentence_without_end_is_spoken_in_pieces(voice: Piper) -> None:
    assert max(len(piece) for piece in voice._pieces("word " * 150)) <= MAX_PHONEMES
    (waveform,) = spoken(voice, ["word " * 150])
    assert 15 < waveform.seconds < 60


def test_an_unbroken_run_of_letters_and_raw_bytes_are_spoken(voice: Piper) -> None:
    assert all(
        waveform.seconds > 0.2 for waveform in spoken(voice, ["a" * 900, "null\x00 byte", "\ud800 half"])
    )


def test_a_folder_without_a_voice_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds 0 \*\.onnx files"):
        Piper(checkpoint={"path": str(tmp_path)})


def test_pieces_end_after_spaces_and_lose_nothing() -> None:
    sentence = list("one two three " * 100)
    cut = list(pieces(sentence, MAX_PHONEMES))
    assert [symbol for piece in cut for symbol in piece] == sentence
    assert all(len(piece) <= MAX_PHONEMES for piece in cut)
    assert all(piece[-1] == " " for piece in cut)


def test_a_word_longer_than_a_piece_is_cut_inside() -> None:
    assert [len(piece) for piece in pieces(["a"] * 1000, 400)] == [400, 400, 200]
