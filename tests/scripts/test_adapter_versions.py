"""An adapter's source and its version move together; see scripts/adapter_versions.py."""

from scripts.adapter_versions import Record, check, code, current, read


def test_no_adapter_changed_without_a_new_version() -> None:
    assert check(current(), read()) == []


def test_a_change_without_a_new_version_is_named() -> None:
    old = {"models.a.A": Record(version="1", source="aa")}
    assert "bump it" in check({"models.a.A": Record(version="1", source="bb")}, old)[0]
    assert "not recorded" in check({"models.a.A": Record(version="2", source="bb")}, old)[0]
    assert check({}, old) == ["models.a.A is recorded and gone"]


def test_comments_docstrings_and_blank_lines_are_no_change() -> None:
    assert code('"""A."""\n\n# why\ndef f():\n    """B."""\n    return 1\n') == "def f():\n    return 1"
    assert code("def f():\n    return 2\n") != code("def f():\n    return 1\n")


def test_code_below_an_adapter_counts() -> None:
    from scripts import adapter_versions

    before = adapter_versions.source_digest("models.chat_audio")
    path = adapter_versions.ROOT / "models" / "decoding.py"
    assert before != adapter_versions.source_digest("models.conversation")
    reached = adapter_versions._imported((adapter_versions.ROOT / "models" / "chat_audio.py").read_text())
    assert "models.decoding" in set(reached) and path.exists()
