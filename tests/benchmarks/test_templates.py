import pytest

from benchmarks.templates import filled

VALUES = {"topic": "school", "attribute": "sad"}


def test_placeholders_are_filled_and_doubled_braces_are_braces() -> None:
    assert (
        filled('On {topic}, {topic}: {{"cue": "{attribute}"}}', VALUES, "p")
        == 'On school, school: {"cue": "sad"}'
    )


def test_braces_in_a_value_are_left_alone() -> None:
    assert filled("On {topic}", {"topic": "{attribute} {{x}}"}, "p") == "On {attribute} {{x}}"


@pytest.mark.parametrize("name", ["tpoic", "", "topic.upper", "topic!r", "topic:>9", '"cue": 1'])
def test_an_unknown_placeholder_names_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError) as refused:
        filled("On {topic} {" + name + "}", VALUES, "prompt p4")
    assert str(refused.value).startswith("prompt p4: no placeholder {" + name + "}")
    assert "there is {attribute}, {topic}" in str(refused.value)
