import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.domain.facts import count_chars
from catalog.domain.sizes import Size, compact_json, measure_definition, measure_list, split_tokens, tokens_of

chars = st.integers(0, 10_000)


@pytest.mark.parametrize(
    ("name", "description", "schema", "chars"),
    [
        ("ab", "cde", {"type": "object"}, 2 + 3 + len('{"type":"object"}')),
        ("ab", None, None, 2 + 0 + 2),
        ("ab", "", {}, 2 + 0 + 2),
        ("né", "日本", {"é": ["ü"]}, 2 + 2 + len('{"é":["ü"]}')),
    ],
)
def test_size_counts_name_description_and_compact_schema(
    name: str, description: str | None, schema: dict[str, object] | None, chars: int
) -> None:
    assert measure_definition(name, description, schema) == Size(chars)


@pytest.mark.parametrize(("chars", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (10_000, 2_500)])
def test_tokens_round_up(chars: int, tokens: int) -> None:
    assert Size(chars).tokens == tokens


def test_json_is_compact_and_keeps_other_scripts() -> None:
    assert compact_json({"a": [1, "ä"]}) == '{"a":[1,"ä"]}'


def test_a_schema_that_is_not_json_has_no_size() -> None:
    endless: dict[str, object] = {}
    endless["self"] = endless
    assert count_chars("a", None, {"x": float("inf")}) is None
    assert count_chars("a", None, endless) is None
    assert count_chars("a", None, {"x": object()}) is None


@given(st.lists(chars), chars)
def test_parts_rounded_together_add_up_and_are_never_negative(parts: list[int], before: int) -> None:
    tokens = split_tokens(parts, before=before)
    assert sum(tokens) == tokens_of(before + sum(parts)) - tokens_of(before)
    assert all(part >= 0 for part in tokens)


@given(chars, chars, chars, chars)
def test_a_list_costs_its_tools_search_tool_and_prompt(
    every: int, tools: int, search: int, prompt: int
) -> None:
    cost = measure_list(all_chars=every, tool_chars=tools, search_tool_chars=search, prompt_chars=prompt)
    assert cost.sent == tokens_of(tools + search + prompt)
    assert cost.tools + cost.search_tool + cost.prompt == cost.sent
    assert min(cost.tools, cost.search_tool, cost.prompt) >= 0
    assert cost.to_mapping() == {"full": tokens_of(every), "sent": cost.sent, "saved": cost.full - cost.sent}
