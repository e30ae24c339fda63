"""What an agent is told of its search, in words."""

from sessions.domain import messages


def test_what_was_found_and_loaded_is_named() -> None:
    assert messages.say_matched(["a"], []) == "Found 1 tool: a."
    assert messages.say_matched(["a", "b"], ["b"]) == "Found 2 tools: a, b. Loaded now: b."


def test_what_only_meaning_found_is_told_as_that() -> None:
    assert messages.say_matched_by_meaning(["a"], ["a"]) == (
        "Found 1 tool by meaning, none by words: a. Loaded now: a."
    )
