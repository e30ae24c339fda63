import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.domain.choices import Kind, Mode, Ranker, ThresholdUnit, Transport
from catalog.domain.dialects import Dialect, ServerEntry, parse_config, read_config, render_config
from catalog.domain.errors import InvalidInput
from catalog.domain.policy import Policy
from catalog.domain.server_names import why_name_refused

SECRET = "ghp_3kS9secretsecret"


def mistakes_of(document: object) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        parse_config(document)
    return {problem.place: problem.message for problem in caught.value.errors}


def parse_server(**entry: Any) -> ServerEntry:
    (server,) = parse_config({"mcpServers": {"github": entry}}).servers
    return server


def test_without_a_mark_the_policy_stays_as_it_is() -> None:
    config = parse_config({"mcpServers": {"a": {"command": "x"}}, "env": {"OTHER": "1"}})
    assert (config.policy_changes, config.dialect) == (None, None)


def test_folder_timeout_and_marked_arguments_go_in_and_out() -> None:
    given = {"command": "npx", "args": ["a", "b"], "cwd": "/srv", "timeoutSeconds": 90, "secretArgs": [1]}
    server = parse_server(**given)
    assert (server.cwd, server.timeout_seconds, server.secret_args) == ("/srv", 90, (1,))
    written = render_config(Dialect.CLAUDE, [server], Policy()).document["mcpServers"]
    assert written == {"github": {**given, "args": ["a", "${GITHUB_ARG_2}"]}}
    wrong = {"command": "npx", "cwd": 5, "timeoutSeconds": 0, "secretArgs": ["b"]}
    places = mistakes_of({"mcpServers": {"github": wrong}})
    assert set(places) == {f"mcpServers.github.{key}" for key in ("cwd", "timeoutSeconds", "secretArgs")}


@pytest.mark.parametrize(
    ("document", "dialect"),
    [
        ({"toolSearch": {}}, Dialect.PIZZAPI),
        ({"env": {"ENABLE_TOOL_SEARCH": "true"}}, Dialect.CLAUDE),
        ({"capabilities": ["tool_search"]}, Dialect.EVERRUNS),
    ],
)
def test_a_dialect_is_known_by_its_mark(document: object, dialect: Dialect) -> None:
    assert parse_config(document).dialect == dialect


def test_two_marks_are_a_mistake() -> None:
    assert "capabilities" in mistakes_of({"toolSearch": {}, "capabilities": ["tool_search"]})
    assert "env.ENABLE_TOOL_SEARCH" in mistakes_of({"toolSearch": {}, "env": {"ENABLE_TOOL_SEARCH": "auto"}})


@pytest.mark.parametrize(
    "value", ["auto:0", "auto:100", "auto:5.5", "auto:-3", "auto:", "auto:x", "yes", "", "TRUE", "auto:５"]
)
def test_a_wrong_value_for_claude_is_named(value: str) -> None:
    message = mistakes_of({"env": {"ENABLE_TOOL_SEARCH": value}})["env.ENABLE_TOOL_SEARCH"]
    assert ascii(value) in message


@pytest.mark.parametrize("value", [5, [], {}])
def test_the_variable_of_claude_is_text(value: object) -> None:
    assert list(mistakes_of({"env": {"ENABLE_TOOL_SEARCH": value}})) == ["env.ENABLE_TOOL_SEARCH"]


def test_capabilities_without_tool_search_are_off() -> None:
    assert parse_config({"capabilities": ["web_fetch"]}).policy_changes == {"mode": "off"}
    assert parse_config({"capabilities": {"web_fetch": {}}}).policy_changes == {"mode": "off"}


def test_mistakes_in_search_settings_have_their_places() -> None:
    pizzapi = {"enabled": 1, "tokenThreshold": "x", "maxResults": 0, "keepLoadedTools": 2}
    assert list(mistakes_of({"toolSearch": pizzapi})) == [
        "toolSearch.enabled",
        "toolSearch.tokenThreshold",
        "toolSearch.maxResults",
        "toolSearch.keepLoadedTools",
    ]
    everruns = {"threshold": True, "never_defer": ["a", 1]}
    assert list(mistakes_of({"capabilities": {"tool_search": everruns}})) == [
        "capabilities.tool_search.threshold",
        "capabilities.tool_search.never_defer[1]",
    ]
    assert list(mistakes_of({"toolSearch": True})) == ["toolSearch"]
    assert list(mistakes_of({"capabilities": "tool_search"})) == ["capabilities"]


@pytest.mark.parametrize(
    ("document", "place", "meant"),
    [
        ({"toolSearch": {"enabled": True, "maxResult": 3}}, "toolSearch.maxResult", "maxResults"),
        ({"toolSearch": {"max_results": 3}}, "toolSearch.max_results", "maxResults"),
        ({"toolSearch": {"colour": 3}}, "toolSearch.colour", "enabled, tokenThreshold"),
        (
            {"capabilities": {"tool_search": {"treshold": 3}}},
            "capabilities.tool_search.treshold",
            "threshold",
        ),
        (
            {"capabilities": {"tool_search": {"neverDefer": []}}},
            "capabilities.tool_search.neverDefer",
            "never_defer",
        ),
        ({"capabilities": ["toolsearch"]}, "capabilities.toolsearch", "tool_search"),
        ({"capabilities": {"toolSearch": {}}}, "capabilities.toolSearch", "tool_search"),
        ({"capabilities": ["tool_serch"]}, "capabilities.tool_serch", "tool_search"),
        ({"capabilities": {"tools_search": {}}}, "capabilities.tools_search", "tool_search"),
        ({"mcpservers": {}}, "mcpservers", "mcpServers"),
        ({"mcpServer": {}, "toolSearch": {}}, "mcpServer", "mcpServers"),
        ({"mcpServers": {}, "toolSerch": {}}, "toolSerch", "toolSearch"),
        ({"mcpServers": {}, "capabilites": ["tool_search"]}, "capabilites", "capabilities"),
        ({"mcp-servers": {}, "toolSearch": {}}, "mcp-servers", "mcpServers"),
        ({"mcpServers": {}, "toolsearch": {}}, "toolsearch", "toolSearch"),
        ({"env": {"enable_tool_search": "true"}}, "env.enable_tool_search", "ENABLE_TOOL_SEARCH"),
        (
            {"mcpServers": {"a": {"url": "https://a.test", "deferloading": True}}},
            "mcpServers.a.deferloading",
            "deferLoading",
        ),
        (
            {"mcpServers": {"a": {"url": "https://a.test", "defer-loading": True}}},
            "mcpServers.a.defer-loading",
            "deferLoading",
        ),
    ],
)
def test_a_key_that_is_nearly_ours_is_refused_with_what_was_meant(
    document: object, place: str, meant: str
) -> None:
    found = mistakes_of(document)
    assert list(found) == [place]
    assert meant in found[place]


def test_both_spellings_that_are_ours_are_read() -> None:
    assert parse_server(url="https://a.test", defer_loading=True).defer_loading is True
    assert parse_server(url="https://a.test", always_load=True).defer_loading is False


@pytest.mark.parametrize(
    ("document", "seen"),
    [
        ({}, "none"),
        ({"servers": {}, "inputs": []}, "servers, inputs"),
        ({"context_servers": {}}, "context_servers"),
        ({"mcpServers": {}}, "mcpServers"),
        ({"toolSearch": None}, "toolSearch"),
        ({"env": {"ENABLE_TOOL_SEARCH": None}}, "env"),
        ({"env": {"OTHER": "1"}}, "env"),
        ({"x" * 1000: 1}, "x" * 40),
        ({str(number): 1 for number in range(10_000)}, "0, 1, 2"),
    ],
)
def test_a_document_with_nothing_of_ours_is_refused_by_its_keys(document: object, seen: str) -> None:
    [message] = mistakes_of(document).values()
    assert f"seen: {seen}" in message
    assert "context_servers (Zed)" in message
    assert len(message) < 1000


def test_keys_of_other_programs_are_named_and_refuse_nothing() -> None:
    servers = {
        "a": {"url": "https://a.test", "timeout": 5, "cwd": "/x"},
        "b": {"url": "https://b.test", "type": "http"},
    }
    parsed = parse_config({"mcpServers": servers, "theme": "dark"})
    assert len(parsed.servers) == 2
    assert parsed.ignored == {"a": ("timeout", "cwd")}
    assert parsed.ignored_keys == ("theme",)


@pytest.mark.parametrize(
    "document",
    [
        {"capabilities": ["web_search", "file_search", "research"]},
        {"capabilities": ["tool_search", "tool_search_v2"]},
        {"mcpServers": {"a": {"command": "x"}}, "mcpServer": {}, "tools": [], "environment": {}},
    ],
)
def test_a_key_that_only_resembles_ours_or_stands_beside_it_is_another_programs(document: object) -> None:
    assert parse_config(document).refused == ()


@pytest.mark.parametrize(
    ("entry", "enabled"),
    [
        ({}, None),
        ({"disabled": None}, None),
        ({"disabled": True}, False),
        ({"disabled": False}, True),
        ({"enabled": False}, False),
        ({"enabled": True, "disabled": False}, True),
    ],
)
def test_disabled_is_read_in_both_ways(entry: dict[str, Any], enabled: bool | None) -> None:
    assert parse_server(url="https://a.test", **entry).enabled is enabled


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({"disabled": True, "enabled": True}, "disabled"),
        ({"disabled": "true"}, "disabled"),
        ({"enabled": 0}, "enabled"),
        ({"kind": "plug-in"}, "kind"),
        ({"kind": True}, "kind"),
    ],
)
def test_a_wrong_kind_or_switch_has_its_place(entry: dict[str, Any], place: str) -> None:
    document = {"mcpServers": {"a": {"url": "https://a.test", **entry}}}
    assert list(mistakes_of(document)) == [f"mcpServers.a.{place}"]


def test_everruns_adds_to_what_is_never_deferred() -> None:
    policy = Policy(never_defer=("bash", "read_*"))
    document = {"capabilities": {"tool_search": {"never_defer": ["grep", "bash"]}}}
    assert parse_config(document).changes_for(policy)["never_defer"] == ["bash", "read_*", "grep"]
    assert parse_config({"capabilities": ["tool_search"]}).changes_for(policy)["never_defer"] == [
        "bash",
        "read_*",
    ]


def test_pizzapi_defers_no_built_in_tools() -> None:
    everruns = Policy().change(parse_config({"capabilities": ["tool_search"]}).changes_for(Policy()))
    assert everruns.defer_builtins is True
    assert everruns.change(parse_config({"toolSearch": {}}).changes_for(everruns)).defer_builtins is False


@pytest.mark.parametrize("document", [None, [], 3, "x"])
def test_a_file_holds_an_object(document: object) -> None:
    assert list(mistakes_of(document)) == [""]


def test_a_command_is_stdio() -> None:
    server = parse_server(command="npx", args=["-y", "x"], env={"TOKEN": "t"})
    assert server == ServerEntry(
        name="github", transport=Transport.STDIO, command="npx", args=("-y", "x"), env={"TOKEN": "t"}
    )


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({}, Transport.HTTP),
        ({"type": "http"}, Transport.HTTP),
        ({"type": "sse"}, Transport.SSE),
        ({"transport": "sse"}, Transport.SSE),
        ({"type": "streamable-http"}, Transport.HTTP),
    ],
)
def test_a_url_is_http_unless_it_says_sse(entry: dict[str, str], transport: Transport) -> None:
    assert parse_server(url="https://example.com/mcp", **entry).transport == transport


@pytest.mark.parametrize(
    ("entry", "defer"),
    [
        ({}, None),
        ({"deferLoading": None}, None),
        ({"deferLoading": True}, True),
        ({"deferLoading": False}, False),
        ({"alwaysLoad": True}, False),
        ({"alwaysLoad": False}, None),
        ({"alwaysLoad": False, "deferLoading": True}, True),
    ],
)
def test_always_load_is_defer_loading_false(entry: dict[str, Any], defer: bool | None) -> None:
    assert parse_server(command="x", **entry).defer_loading is defer


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({}, "mcpServers.github"),
        ({"command": "x", "url": "https://a.b"}, "mcpServers.github"),
        ({"command": 5}, "mcpServers.github.command"),
        ({"command": "x\0"}, "mcpServers.github.command"),
        ({"command": "x", "args": [SECRET, 5]}, "mcpServers.github.args[1]"),
        ({"command": "x", "args": SECRET}, "mcpServers.github.args"),
        ({"command": "x", "env": {"TOKEN": [SECRET]}}, "mcpServers.github.env.TOKEN"),
        ({"command": "x", "env": [SECRET]}, "mcpServers.github.env"),
        ({"url": f"ftp://{SECRET}@host"}, "mcpServers.github.url"),
        ({"url": f"http://[{SECRET}"}, "mcpServers.github.url"),
        ({"url": "https://a.b", "headers": {"X y": {"a": SECRET}}}, 'mcpServers.github.headers["X y"]'),
        ({"command": "x", "type": SECRET}, "mcpServers.github.type"),
        ({"command": "x", "type": "http"}, "mcpServers.github.type"),
        ({"url": "https://a.b", "type": "stdio"}, "mcpServers.github.type"),
        ({"command": "x", "deferLoading": SECRET}, "mcpServers.github.deferLoading"),
        ({"command": "x", "alwaysLoad": True, "deferLoading": True}, "mcpServers.github.alwaysLoad"),
        (SECRET, "mcpServers.github"),
    ],
)
def test_a_mistake_has_its_place_and_shows_no_secret(entry: object, place: str) -> None:
    mistakes = mistakes_of({"mcpServers": {"github": entry}})
    assert place in mistakes
    assert SECRET not in json.dumps(mistakes)


def test_a_bad_server_leaves_the_others_alone() -> None:
    config = read_config({"mcpServers": {"good": {"command": "x"}, "bad": {"command": 5}, "worse": []}})
    assert [server.name for server in config.servers] == ["good"]
    assert [(one.name, one.reason) for one in config.refused] == [
        ("bad", "command: must be text, not a number"),
        ("worse", "must be an object, not a list"),
    ]
    assert config.order == ("good", "bad", "worse")


def test_a_dollar_of_our_own_documents_is_no_reference() -> None:
    document = {"mcpServers": {"a": {"command": "x", "env": {"A": "$HOME"}}}}
    assert parse_config(document).servers[0].env == {"A": "$HOME"}
    assert read_config(document).servers[0].env == {"A": "${HOME}"}


def test_nothing_secret_is_in_the_repr() -> None:
    assert SECRET not in repr(parse_server(command="x", env={"TOKEN": SECRET}, args=["--token", SECRET]))


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("mode", [Mode.ALWAYS, Mode.OFF])
def test_every_dialect_can_say_always_and_off(dialect: Dialect, mode: Mode) -> None:
    changes = parse_config(render_config(dialect, (), Policy(mode=mode)).document).policy_changes
    assert changes is not None
    read = Policy().change(changes)
    assert read.mode == mode or (read.mode, read.limit) == (Mode.AUTO, 0)


@pytest.mark.parametrize(
    ("unit", "threshold", "chars"),
    [("tokens", 2_500, 10_000), ("context_percent", 10, 80_000), ("chars", 123, 123)],
)
def test_pizzapi_says_sizes_in_characters(unit: str, threshold: int, chars: int) -> None:
    policy = Policy(mode=Mode.AUTO, threshold_unit=ThresholdUnit(unit), threshold=threshold)
    section = render_config(Dialect.PIZZAPI, (), policy).document["toolSearch"]
    assert isinstance(section, Mapping)
    assert section["tokenThreshold"] == chars


@pytest.mark.parametrize(
    ("dialect", "unit"),
    [(Dialect.PIZZAPI, "tools"), (Dialect.CLAUDE, "chars"), (Dialect.EVERRUNS, "tokens")],
)
def test_what_a_dialect_cannot_say_is_left_out_and_named(dialect: Dialect, unit: str) -> None:
    policy = Policy(mode=Mode.AUTO, threshold_unit=ThresholdUnit(unit), ranker=Ranker.KEYWORD, threshold=33)
    rendered = render_config(dialect, (), policy)
    assert rendered.document == {"mcpServers": {}}
    assert {"mode", "ranker"} <= set(rendered.left_out)


def test_a_default_policy_leaves_nothing_out() -> None:
    assert render_config(Dialect.PIZZAPI, (), Policy()).left_out == ()
    assert render_config(Dialect.CLAUDE, (), Policy()).left_out == ()


def test_a_snapshot_is_not_in_a_config_file() -> None:
    snapshot = ServerEntry(name="a", transport=Transport.SNAPSHOT)
    assert render_config(Dialect.CLAUDE, [snapshot], Policy()).document["mcpServers"] == {}


names = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20).filter(
    lambda name: why_name_refused(name) is None
)
storable = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
headers = st.dictionaries(
    st.from_regex(r"X-[A-Za-z0-9_.!~-]{1,9}", fullmatch=True), st.text(storable, max_size=20), max_size=3
)
texts = st.dictionaries(st.text(storable, min_size=1, max_size=9), st.text(storable, max_size=20), max_size=3)
commands = st.builds(
    ServerEntry,
    name=names,
    transport=st.just(Transport.STDIO),
    command=st.text(storable, min_size=1, max_size=20),
    args=st.lists(st.text(storable, max_size=20), max_size=4).map(tuple),
    env=texts,
    defer_loading=st.sampled_from([None, True, False]),
    kind=st.sampled_from([None, Kind.PLUGIN, Kind.BUILTIN]),
    enabled=st.sampled_from([None, False]),
)
addresses = st.builds(
    ServerEntry,
    name=names,
    transport=st.sampled_from([Transport.HTTP, Transport.SSE]),
    url=st.sampled_from(["https://a.example/mcp", "http://u:p@b.example:81/x?key=1", "${BASE}/mcp"]),
    headers=headers,
    defer_loading=st.sampled_from([None, True, False]),
    kind=st.sampled_from([None, Kind.PLUGIN, Kind.BUILTIN]),
    enabled=st.sampled_from([None, False]),
)
servers = st.lists(commands | addresses, unique_by=lambda server: server.name, max_size=4)
sayable = {
    Dialect.PIZZAPI: st.builds(
        Policy,
        mode=st.sampled_from([Mode.AUTO, Mode.OFF]),
        threshold=st.integers(0, 10**6),
        max_results=st.integers(1, 50),
        keep_loaded_tools=st.booleans(),
    ),
    Dialect.CLAUDE: st.builds(Policy, mode=st.sampled_from([Mode.ALWAYS, Mode.OFF]))
    | st.integers(1, 99).map(
        lambda percent: Policy(
            mode=Mode.AUTO, threshold_unit=ThresholdUnit.CONTEXT_PERCENT, threshold=percent
        )
    ),
    Dialect.EVERRUNS: st.builds(
        Policy,
        mode=st.just(Mode.AUTO),
        threshold_unit=st.just(ThresholdUnit.TOOLS),
        threshold=st.integers(0, 999),
        never_defer=st.lists(st.text(storable, min_size=1, max_size=9), max_size=3).map(tuple),
        ranker=st.just(Ranker.OVERLAP),
        max_results=st.just(8),
        score_cutoff=st.just(0.5),
        defer_builtins=st.just(True),
    ),
}


@pytest.mark.parametrize("dialect", Dialect)
@given(data=st.data(), listed=servers)
def test_what_is_exported_comes_back(
    dialect: Dialect, data: st.DataObject, listed: list[ServerEntry]
) -> None:
    policy = data.draw(sayable[dialect])
    rendered = render_config(dialect, listed, policy, secrets=True)
    config = parse_config(json.loads(json.dumps(rendered.document)))
    assert sorted(config.servers, key=lambda server: server.name) == sorted(listed, key=lambda s: s.name)
    assert (config.dialect, rendered.left_out) == (dialect, ())
    assert replace(Policy().change(config.policy_changes or {}), slug=policy.slug) == policy


@given(servers)
def test_an_export_without_secrets_can_be_imported(listed: list[ServerEntry]) -> None:
    document = render_config(Dialect.PIZZAPI, listed, Policy()).document
    again = parse_config(document)
    assert render_config(Dialect.PIZZAPI, again.servers, Policy()).document == document
