"""Names of tools for MCP clients."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from catalog.domain.choices import Kind
from catalog.domain.names import ToolId, name_all
from sessions.domain.gateway_names import FIXED_NAMES, MAX_CHARS, NameStyle, name_search_tool, name_tools

SEARCH = "search_tools"


def named(*tools: ToolId, style: NameStyle = NameStyle.QUALIFIED) -> list[str]:
    qualified = name_all(tools, reserved=())
    names = name_tools(qualified, style, search_tool=SEARCH)
    return [names[tool] for tool in tools]


def mcp(server: str, tool: str) -> ToolId:
    return ToolId(Kind.MCP, server, tool)


def test_prefix_of_mcp_servers_is_left_out() -> None:
    assert named(mcp("time", "now"), ToolId(Kind.PLUGIN, "notes", "add")) == [
        "time__now",
        "plugin__notes__add",
    ]


def test_long_name_is_cut_and_ends_as_the_catalogs_names_do() -> None:
    tool = mcp("server", "t" * 60)
    ending = hashlib.sha256(f"mcp\0server\0{'t' * 60}".encode()).hexdigest()[:8]
    (name,) = named(tool)
    assert name == f"{('server__' + 't' * 60)[:38]}_{ending}"
    assert len(name) == MAX_CHARS


def test_every_tool_of_a_clash_gets_the_ending() -> None:
    one, other = named(mcp("plugin__a", "b"), ToolId(Kind.PLUGIN, "a", "b"))
    assert one.startswith("plugin__a__b_")
    assert other.startswith("plugin__a__b_")
    assert one != other


def test_own_names_where_no_two_clash() -> None:
    tools = [
        mcp("a", "read"),
        mcp("a", "list"),
        mcp("b", "list"),
        mcp("b", "call_tool"),
        mcp("c", "two words"),
    ]
    assert named(*tools, style=NameStyle.OWN) == [
        "read",
        "a__list",
        "b__list",
        "b__call_tool",
        "c__two_words",
    ]


def test_own_name_that_is_a_qualified_one_of_another_keeps_it() -> None:
    own, qualified, same = named(mcp("x", "a__list"), mcp("a", "list"), mcp("b", "list"), style=NameStyle.OWN)
    assert (own, same) == ("a__list", "b__list")
    assert qualified.startswith("a__list_")


def test_no_tool_is_named_by_anothers_qualified_name() -> None:
    """A server could else take the calls of another's tool."""
    for style in NameStyle:
        wanted, other = named(mcp("github", "merge"), mcp("mcp", "github__merge"), style=style)
        assert wanted == ("merge" if style is NameStyle.OWN else "github__merge")
        assert other != "mcp__github__merge"
    for victim in (mcp("github", "merge"), ToolId(Kind.PLUGIN, "github", "merge")):
        (qualified,) = name_all([victim], reserved=()).values()
        assert qualified not in named(victim, mcp("evil", qualified), style=NameStyle.OWN)


def test_search_tool_that_is_named_as_another_of_ours_takes_the_default() -> None:
    assert name_search_tool("call_tool") == SEARCH
    assert name_search_tool("find") == "find"


@given(
    st.lists(
        st.builds(
            ToolId,
            st.sampled_from(Kind),
            st.sampled_from(["a", "a__b", "plugin", "ü"]),
            st.text(alphabet="ab_ü. ", min_size=1, max_size=70) | st.sampled_from([*FIXED_NAMES, SEARCH]),
        ),
        unique=True,
        max_size=30,
    ),
    st.sampled_from(NameStyle),
)
def test_names_are_unique_and_never_those_of_our_tools(tools: list[ToolId], style: NameStyle) -> None:
    names = named(*tools, style=style)
    qualified = name_all(tools, reserved=())
    for tool, name in zip(tools, names, strict=True):
        assert not name.startswith("mcp__") or all(
            name != one for other, one in qualified.items() if other != tool
        )
    assert len(set(names)) == len(names)
    assert not {SEARCH, *FIXED_NAMES}.intersection(names)
    if style is NameStyle.QUALIFIED:
        assert all(len(name) <= MAX_CHARS for name in names)


@given(
    st.permutations([mcp("a", "x"), mcp("a", "x."), mcp("a", "x_"), mcp("b", "t" * 70), mcp("b", "t" * 71)])
)
def test_names_do_not_depend_on_the_order(tools: list[ToolId]) -> None:
    in_order = sorted(tools)
    assert dict(zip(tools, named(*tools), strict=True)) == dict(zip(in_order, named(*in_order), strict=True))
