"""Properties that hold for every document, policy and catalog."""

import json
import random
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from catalog.domain import dialects
from catalog.domain.choices import Kind, Loading, Mode, ThresholdUnit
from catalog.domain.decide import decide, explain_decision, prepare_rules
from catalog.domain.document import parse_document
from catalog.domain.errors import InvalidInput
from catalog.domain.facts import SessionFacts, ToolFacts
from catalog.domain.globs import compile_globs
from catalog.domain.policy import Policy
from tests.catalog.domain.making import deferred_in, make_tool, reasons_of

globs = st.lists(st.text("ab*?[]!-/_\n", min_size=1, max_size=6), max_size=3).map(tuple)
tool_lists = st.lists(
    st.builds(
        make_tool,
        st.text("ab_", min_size=1, max_size=3),
        server=st.sampled_from(["a", "b"]),
        kind=st.sampled_from(Kind),
        chars=st.none() | st.integers(0, 2_000),
        loading=st.sampled_from(Loading),
        server_defers=st.sampled_from([None, True, False]),
        always_load=st.booleans(),
        should_defer=st.booleans(),
    ),
    unique_by=lambda tool: tool.name,
    max_size=12,
)
policies = st.builds(
    Policy,
    mode=st.sampled_from(Mode),
    threshold_unit=st.sampled_from(ThresholdUnit),
    threshold=st.none() | st.integers(0, 5_000) | st.floats(0, 100),
    context_window=st.integers(1, 9_999),
    never_defer=globs,
    always_defer=globs,
    visible=st.none() | globs,
    defer_builtins=st.booleans(),
)
sessions = st.builds(
    SessionFacts,
    context_window=st.none() | st.integers(1, 9_999),
    context_used=st.none() | st.integers(0, 9_999),
    is_past_context_used=st.booleans(),
    loaded=st.lists(st.text("ab_", max_size=3), max_size=2).map(tuple),
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(
    [
        *("policy", "servers", "session", "tools", "name", "description", "inputSchema", "_meta", "loading"),
        *(
            "mode",
            "threshold",
            "thresholdUnit",
            "neverDefer",
            "never_defer",
            "visible",
            "kind",
            "deferLoading",
        ),
        *("context_window", "context_used", "loaded", "mcpServers", "toolSearch", "capabilities", "env"),
        *("tool_search", "ENABLE_TOOL_SEARCH", "command", "args", "url", "headers", "enabled", "type"),
    ]
)
likely_values = json_values | st.sampled_from(
    ["auto", "always", "tools", "builtin", "a*", "auto:5", "https://a.b"]
)
odd_documents = st.recursive(
    likely_values,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(keys | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=25,
)
shaped_documents = st.fixed_dictionaries(
    {},
    optional={
        "policy": st.dictionaries(keys, likely_values, max_size=3),
        "servers": st.dictionaries(
            st.text(max_size=4),
            st.fixed_dictionaries(
                {
                    "tools": st.lists(
                        st.fixed_dictionaries(
                            {"name": st.text(min_size=1)},
                            optional={
                                "inputSchema": odd_documents,
                                "_meta": odd_documents,
                                "description": st.text(),
                            },
                        )
                    )
                },
                optional={
                    "kind": st.sampled_from(Kind),
                    "deferLoading": st.sampled_from([None, True, False]),
                },
            ),
            max_size=3,
        ),
        "session": st.dictionaries(keys, likely_values, max_size=2),
    },
)


@given(odd_documents | shaped_documents)
def test_no_document_makes_deciding_crash(document: Any) -> None:
    try:
        read = parse_document(document)
    except InvalidInput:
        return
    decided = decide(read.tools, read.policy, read.session)
    assert decided.active or not deferred_in(decided)
    json.dumps(decided.to_mapping())


@given(odd_documents)
def test_no_file_makes_the_dialects_crash(document: Any) -> None:
    try:
        config = dialects.parse_config(document)
    except InvalidInput:
        return
    Policy().change(config.policy_changes or {})


@given(tool_lists, policies, sessions, st.randoms(use_true_random=False))
def test_the_order_of_input_does_not_matter(
    tools: list[ToolFacts], policy: Policy, session: SessionFacts, chance: random.Random
) -> None:
    shuffled = tools[:]
    chance.shuffle(shuffled)
    assert decide(shuffled, policy, session) == decide(tools, policy, session)


@given(tool_lists, policies, sessions)
def test_a_never_defer_tool_is_never_deferred(
    tools: list[ToolFacts], policy: Policy, session: SessionFacts
) -> None:
    pinned = compile_globs(policy.never_defer)
    assert deferred_in(decide(tools, policy, session)).isdisjoint(tool.name for tool in tools if pinned(tool))


@given(tool_lists, policies, sessions, st.integers(0, 5_000), st.integers(0, 5_000))
def test_raising_a_threshold_never_defers_more(
    tools: list[ToolFacts], policy: Policy, session: SessionFacts, one: int, other: int
) -> None:
    low, high = (
        deferred_in(decide(tools, replace(policy, threshold=threshold), session))
        for threshold in sorted([one, other])
    )
    assert high <= low


@given(tool_lists, policies, sessions)
def test_the_first_rule_explained_is_the_one_that_decided(
    tools: list[ToolFacts], policy: Policy, session: SessionFacts
) -> None:
    decided = decide(tools, policy, replace(session, loaded=()))
    situation = prepare_rules(policy, decided.measure)
    reasons = reasons_of(decided)
    assert all(
        explain_decision(tool, situation)[0].reason == reasons[tool.name]
        for tool in tools
        if tool.name in reasons
    )


@given(st.text(min_size=1, max_size=20))
def test_every_text_is_a_glob(glob: str) -> None:
    assert compile_globs((glob,))(make_tool()) in {True, False}
