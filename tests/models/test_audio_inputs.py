"""How requests are put to processors."""

import pytest

from models import loading
from models.audio_inputs import PromptFormat, prepare
from tests.models.tiny import asked, checkpoint, option


def test_a_turns_suffix_ends_the_users_turn() -> None:
    processor = loading.load_processor({"path": str(checkpoint("audio_flamingo3"))})
    settings = option("audio_flamingo3_think")["adapter"]["prompt_format"]
    request = asked("audio_flamingo3", 0.5, "Who?", 1)
    ids = prepare(processor, PromptFormat.parse(settings), [request])["input_ids"][0]
    said = processor.tokenizer.decode(ids)
    assert "Who?\nPlease think and reason about the input audio before you respond.<|im_end|>" in said


def test_settings_that_do_not_exist_are_refused_with_those_that_do() -> None:
    with pytest.raises(ValueError, match="no setting prefix; it has chat_template"):
        PromptFormat.parse({"prefix": "x"})
    with pytest.raises(ValueError, match="one of processor, mistral_common"):
        PromptFormat.parse({"chat_template": "jinja"})
