from dataclasses import replace

from catalog.domain.choices import Mode
from catalog.domain.decide import decide
from catalog.domain.facts import ToolFacts
from catalog.domain.flips import DryRun, ServerFlips, compare
from catalog.domain.policy import Policy
from catalog.domain.sizes import tokens_of
from tests.catalog.domain.making import make_tool

TOOLS = [
    make_tool("a", server="one", chars=41),
    make_tool("b", server="one", chars=41),
    make_tool("c", server="two", chars=100),
]
ALL_LOADED = Policy(mode=Mode.OFF)


def run(before: Policy, after: Policy, tools: list[ToolFacts] = TOOLS) -> DryRun:
    chars = {tool.name: tool.chars for tool in tools}
    return compare(decide(tools, before), decide(tools, after), chars)


def test_no_change_flips_nothing() -> None:
    result = run(ALL_LOADED, ALL_LOADED)
    assert (result.flips, result.servers) == ((), ())


def test_flips_are_counted_per_server_and_rounded_once() -> None:
    result = run(ALL_LOADED, Policy(never_defer=("c",)))
    assert [flip.name for flip in result.flips] == ["mcp__one__a", "mcp__one__b"]
    assert result.servers == (ServerFlips("one", to_load=0, to_defer=2, tokens=-21),)


def test_servers_add_up_to_the_difference_of_what_is_sent() -> None:
    tools = [make_tool(f"t{number}", server=f"s{number}", chars=41) for number in range(7)]
    result = run(ALL_LOADED, Policy(), tools)
    assert sum(row.tokens for row in result.servers) == -tokens_of(7 * 41)


def test_servers_with_the_largest_change_come_first() -> None:
    tools = [
        make_tool("a", server="small", chars=40),
        make_tool("b", server="large", chars=4000),
        make_tool("c", server="also_small", chars=40),
    ]
    assert [row.server for row in run(ALL_LOADED, Policy(), tools).servers] == [
        "large",
        "also_small",
        "small",
    ]


def test_a_change_of_reason_alone_is_no_flip() -> None:
    assert run(Policy(), Policy(always_defer=("*",))).flips == ()


def test_flips_go_both_ways() -> None:
    result = run(Policy(never_defer=("a",)), Policy(never_defer=("c",)))
    assert result.servers == (
        ServerFlips("two", to_load=1, to_defer=0, tokens=25),
        ServerFlips("one", to_load=0, to_defer=1, tokens=-11),
    )


def test_a_tool_that_is_hidden_flips_to_nothing() -> None:
    (flip,) = run(ALL_LOADED, replace(ALL_LOADED, visible=("[ab]",))).flips
    assert (flip.name, flip.server, flip.tokens, flip.after) == ("mcp__two__c", "two", 25, None)


def test_a_tool_of_unknown_size_counts_nothing() -> None:
    tools = [make_tool("a", chars=None)]
    result = run(ALL_LOADED, Policy(), tools)
    assert (len(result.flips), result.flips[0].tokens, result.servers[0].tokens) == (1, 0, 0)
