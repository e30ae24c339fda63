import hashlib
import re

from hypothesis import given
from hypothesis import strategies as st

from catalog.domain.choices import Kind
from catalog.domain.names import ToolId, candidate_names, end_name, name_all, qualify


def digits_of(kind: str, server: str, tool: str) -> str:
    return hashlib.sha256(f"{kind}\0{server}\0{tool}".encode()).hexdigest()[:8]


def test_each_kind_has_its_form() -> None:
    assert qualify(ToolId(Kind.MCP, "github", "create_issue")) == "mcp__github__create_issue"
    assert qualify(ToolId(Kind.PLUGIN, "notes", "add")) == "plugin__notes__add"
    assert qualify(ToolId(Kind.BUILTIN, "agent", "bash")) == "bash"


def test_foreign_characters_become_underscores() -> None:
    assert qualify(ToolId(Kind.MCP, "my server", "a.b/ç")) == "mcp__my_server__a_b__"


def test_a_name_of_64_characters_stays_and_one_of_65_is_cut() -> None:
    fits = ToolId(Kind.BUILTIN, "agent", "x" * 64)
    too_long = ToolId(Kind.BUILTIN, "agent", "x" * 65)
    assert qualify(fits) == "x" * 64
    assert qualify(too_long) == "x" * 55 + "_" + digits_of("builtin", "agent", "x" * 65)


def test_every_tool_of_a_clash_gets_the_ending() -> None:
    dot, slash = ToolId(Kind.MCP, "s", "a.b"), ToolId(Kind.MCP, "s", "a/b")
    names = name_all([dot, slash, ToolId(Kind.MCP, "s", "c")], reserved=())
    assert names[dot] == f"mcp__s__a_b_{digits_of('mcp', 's', 'a.b')}"
    assert names[slash] == f"mcp__s__a_b_{digits_of('mcp', 's', 'a/b')}"
    assert names[ToolId(Kind.MCP, "s", "c")] == "mcp__s__c"


def test_the_search_tools_name_is_reserved() -> None:
    own = ToolId(Kind.BUILTIN, "agent", "search_tools")
    expected = f"search_tools_{digits_of('builtin', 'agent', 'search_tools')}"
    assert name_all([own], reserved={"search_tools"})[own] == expected


def test_a_name_given_before_stays_and_the_newcomer_gets_the_ending() -> None:
    newcomer = ToolId(Kind.MCP, "s", "a/b")
    assert name_all([newcomer], reserved={"mcp__s__a_b"})[newcomer] == end_name(newcomer)


def test_a_tool_named_like_anothers_ending_gets_an_ending_too() -> None:
    dot, slash = ToolId(Kind.BUILTIN, "s", "a.b"), ToolId(Kind.BUILTIN, "s", "a/b")
    imitator = ToolId(Kind.BUILTIN, "s", end_name(dot))
    names = name_all([imitator, dot, slash], reserved=())
    assert names[dot] == end_name(dot)
    assert names[imitator] == end_name(imitator)


def test_endings_that_clash_grow() -> None:
    tool = ToolId(Kind.BUILTIN, "s", "a")
    name = name_all([tool], reserved={"a", end_name(tool)})[tool]
    assert re.fullmatch(r"a_[0-9a-f]{16}", name)
    assert name in candidate_names(tool)


tool_ids = st.builds(
    ToolId,
    st.sampled_from(Kind),
    st.text(alphabet="ab._é", min_size=1, max_size=4),
    st.text(alphabet="ab._é", min_size=1, max_size=3) | st.text(min_size=55, max_size=80),
)


@given(st.lists(tool_ids, unique=True, max_size=30), st.sets(st.sampled_from(["a", "b", "mcp__a__b"])))
def test_names_are_unique_short_plain_and_stable(ids: list[ToolId], reserved: set[str]) -> None:
    names = name_all(ids, reserved=reserved)
    assert len(set(names.values())) == len(ids)
    assert reserved.isdisjoint(names.values())
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names.values())
    assert name_all(ids[::-1], reserved=reserved) == names


@given(st.lists(tool_ids, unique=True, max_size=20), st.integers(0, 20))
def test_tools_that_come_later_never_take_a_name(ids: list[ToolId], cut: int) -> None:
    first = name_all(ids[:cut], reserved=())
    later = name_all(ids[cut:], reserved=set(first.values()))
    assert set(first.values()).isdisjoint(later.values())
