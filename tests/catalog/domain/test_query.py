"""The query language: which form a text has, and where a mistake is."""

import pytest

from catalog.domain.errors import InvalidInput
from catalog.domain.query import (
    Browse,
    Keywords,
    Required,
    Select,
    name_forms,
    parse_pattern,
    parse_query,
    strip_quotes,
)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_query_browses(text: str) -> None:
    assert parse_query(text) == Browse()


def test_plain_words_are_keywords() -> None:
    assert parse_query("  send a message ") == Keywords("send a message")


def test_select_names_tools_in_order_each_once() -> None:
    parsed = parse_query('select: Read , `mcp__github__create_issue`,"Edit",Read,')
    assert parsed == Select(("Read", "mcp__github__create_issue", "Edit"))


def test_select_may_be_longer_than_keywords() -> None:
    names = [f"mcp__server__{'long' * 10}_{number}" for number in range(20)]
    assert parse_query("select:" + ",".join(names)) == Select(tuple(names))


def test_select_takes_twenty_names() -> None:
    names = [f"tool_{number}" for number in range(21)]
    assert parse_query(f"select:{','.join(names[:20])},tool_0").form == "select"  # one of them twice
    with pytest.raises(InvalidInput, match=r"query: .*at most 20 names, not 21 \(position 7\)"):
        parse_query(f"select:{','.join(names)}")


def test_select_has_room_for_twenty_of_the_longest_names() -> None:
    longest = [f"`{'s' * 100}/{'t' * 253}{number:02}`" for number in range(20)]  # server, sign, tool
    assert parse_query(f"select: {', '.join(longest)}").form == "select"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("select:a" + ",b" * 4_000, id="names"),
        pytest.param("select:" + "a" * 8_000, id="name"),
        pytest.param("a" + " " * 8_000, id="spaces"),
    ],
)
def test_no_query_is_longer_than_a_select_may_be(text: str) -> None:
    assert parse_query(text[:8_000]).form == ("select" if text.startswith("select:") else "keywords")
    with pytest.raises(InvalidInput, match=r"query: .*8000 characters \(position 8000\)"):
        parse_query(text)


def test_select_without_a_name_is_refused_at_its_position() -> None:
    with pytest.raises(InvalidInput, match=r"position 9"):
        parse_query("  select: , ")


def test_plus_words_are_required_and_the_rest_ranks() -> None:
    parsed = parse_query("send +slack message +Team")
    assert parsed == Required("send +slack message +Team", ("slack", "Team"), "send message")


def test_a_plus_sign_alone_is_text() -> None:
    assert parse_query("a + b ++ c++") == Keywords("a + b ++ c++")


def test_five_hundred_characters_are_enough() -> None:
    assert parse_query("x" * 500) == Keywords("x" * 500)
    with pytest.raises(InvalidInput, match=r"query: .*500 characters \(position 500\)"):
        parse_query("x" * 501)


def test_a_pattern_has_one_to_two_hundred_characters() -> None:
    assert parse_pattern("a" * 200).text == "a" * 200
    with pytest.raises(InvalidInput, match=r"pattern: .*\(position 200\)"):
        parse_pattern("a" * 201)
    with pytest.raises(InvalidInput, match=r"\(position 0\)"):
        parse_pattern("")


def test_a_pattern_is_taken_as_it_is() -> None:
    assert parse_pattern(" select:x ").text == " select:x "


@pytest.mark.parametrize(
    "text",
    [
        "(read_file)",
        "read_file.",
        "**read_file**",
        "[`read_file`]",
        "「read_file」",
        "<read_file>!",
        "- read_file:",
    ],
)
def test_any_punctuation_around_a_name_comes_off(text: str) -> None:
    assert "read_file" in name_forms(text)


def test_name_is_tried_as_typed_before_its_signs_come_off() -> None:
    assert name_forms(" _private_ ") == ("_private_", "private")
    assert name_forms('"what?"') == ('"what?"', "what?", "what")
    assert name_forms("???") == ("???", "")


@pytest.mark.parametrize("text", ["`read_file`", '"read_file"', "'read_file'", " “read_file” ", "read_file"])
def test_quotes_around_a_name_come_off(text: str) -> None:
    assert strip_quotes(text) == "read_file"
