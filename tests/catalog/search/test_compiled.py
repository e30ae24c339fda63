"""A compiled catalog: names, masks, and impacts that add up."""

import math

import numpy as np
import pytest

from catalog.search.compiled import K1, Compiled
from catalog.search.errors import IndexDamaged
from catalog.search.fields import FIELDS
from catalog.search.request import Visible
from tests.catalog.search.samples import TOOLS, compile_tools, make_tool


def test_rows_are_in_the_order_of_qualified_names() -> None:
    compiled = compile_tools(TOOLS[::-1])
    assert compiled.qualified_names == sorted(tool.qualified_name for tool in TOOLS)


def test_a_name_leads_to_all_tools_that_bear_it() -> None:
    compiled = compile_tools()
    ids = [int(compiled.ids[row]) for row in compiled.rows_named("create_issue")]
    assert ids == [1, 7]
    assert len(compiled.rows_named("mcp__jira__create_issue")) == 1
    assert compiled.rows_named("read") == compiled.rows_named("Read") != ()


def test_impact_is_bm25f() -> None:
    tools = [make_tool(1, "s", "alpha"), make_tool(2, "s", "beta"), make_tool(3, "s", "gamma", "alpha")]
    found = compile_tools(tools).postings_of("alpha")
    assert found is not None
    name = next(field for field in FIELDS if field.name == "name")
    idf = math.log1p((3 - 2 + 0.5) / (2 + 0.5))
    assert found[0].tolist() == [0, 2]
    # Every name is one word long, so its length does not count.
    assert found[1][0] == pytest.approx(idf * name.weight * (K1 + 1) / (K1 + name.weight))


def test_fields_divide_an_impact_wholly() -> None:
    compiled = compile_tools()
    shares = compiled.field_shares("issu", compiled.rows_named("mcp__github__create_issue")[0])
    assert set(shares) == {"name", "description"}
    assert sum(shares.values()) == pytest.approx(1)


def test_the_qualified_name_filters_but_ranks_nothing() -> None:
    compiled = compile_tools()
    assert compiled.postings_of("mcp") is None
    assert len(compiled.rows_named_with("mcp")) == len(TOOLS) - 1


def test_a_mask_is_remembered_while_its_visibility_lives() -> None:
    compiled = compile_tools()
    visible = Visible.of([1, 4, 999])
    mask = compiled.mask_of(visible)
    assert sorted(compiled.ids[mask].tolist()) == [1, 4]
    assert compiled.mask_of(visible) is mask


def test_no_mask_is_needed_where_everything_is_visible() -> None:
    compiled = compile_tools()
    assert compiled.mask_of(Visible.of([*compiled.ids.tolist(), 999])) is None


def test_an_unknown_term_has_no_postings() -> None:
    assert compile_tools().postings_of("unheard") is None
    assert len(compile_tools().rows_named_with("unheard")) == 0


def test_an_empty_catalog_compiles() -> None:
    compiled = compile_tools([])
    assert len(compiled) == 0
    assert compiled.postings_of("x") is None
    assert compiled.rows_named("x") == ()
    assert compiled.contains("x").in_name.tolist() == []


def test_another_format_is_damage() -> None:
    with pytest.raises(IndexDamaged, match="format 0"):
        Compiled({"ids": np.empty(0)}, {"format": 0})
