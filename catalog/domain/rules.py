"""The rules that decide one tool, in their order. The first that applies decides, and its reason is given."""

from collections.abc import Callable
from dataclasses import dataclass

from catalog.domain.choices import Kind, Loading, Mode, Outcome, Reason
from catalog.domain.facts import ToolFacts
from catalog.domain.globs import Matches
from catalog.domain.policy import Policy


@dataclass(frozen=True, slots=True)
class Situation:
    """All that the rules look at besides the tool; made once for many tools."""

    policy: Policy
    over: bool | None  # None: the threshold cannot be computed
    is_never_deferred: Matches
    is_always_deferred: Matches


@dataclass(frozen=True, slots=True)
class Rule:
    reason: Reason
    outcome: Outcome
    applies: Callable[[ToolFacts, Situation], bool]


def is_search_tool(tool: ToolFacts, situation: Situation) -> bool:
    return tool.name == situation.policy.search_tool_name


def is_search_off(_tool: ToolFacts, situation: Situation) -> bool:
    return situation.policy.mode == Mode.OFF


def is_never_deferred(tool: ToolFacts, situation: Situation) -> bool:
    return situation.is_never_deferred(tool)


def is_always_deferred(tool: ToolFacts, situation: Situation) -> bool:
    return situation.is_always_deferred(tool)


def is_tool_always(tool: ToolFacts, _situation: Situation) -> bool:
    return tool.loading == Loading.ALWAYS


def is_tool_defer(tool: ToolFacts, _situation: Situation) -> bool:
    return tool.loading == Loading.DEFER


def is_server_defer(tool: ToolFacts, _situation: Situation) -> bool:
    return tool.server_defers is True


def is_meta_always_load(tool: ToolFacts, _situation: Situation) -> bool:
    return tool.always_load is True


def is_server_load(tool: ToolFacts, _situation: Situation) -> bool:
    return tool.server_defers is False


def is_builtin_that_stays(tool: ToolFacts, situation: Situation) -> bool:
    return tool.kind == Kind.BUILTIN and not tool.should_defer and not situation.policy.defer_builtins


def is_mode_always(_tool: ToolFacts, situation: Situation) -> bool:
    return situation.policy.mode == Mode.ALWAYS


def is_over_threshold(_tool: ToolFacts, situation: Situation) -> bool:
    return situation.policy.mode == Mode.AUTO and situation.over is True


def is_under_threshold(_tool: ToolFacts, situation: Situation) -> bool:
    return situation.policy.mode == Mode.AUTO and situation.over is False


def is_uncertain(_tool: ToolFacts, situation: Situation) -> bool:
    return situation.policy.mode == Mode.AUTO and situation.over is None


UNCERTAIN = Rule(Reason.UNCERTAIN, Outcome.LOAD, is_uncertain)

RULES: tuple[Rule, ...] = (
    Rule(Reason.SEARCH_TOOL, Outcome.LOAD, is_search_tool),
    Rule(Reason.SEARCH_OFF, Outcome.LOAD, is_search_off),
    Rule(Reason.NEVER_DEFER, Outcome.LOAD, is_never_deferred),
    Rule(Reason.ALWAYS_DEFER, Outcome.DEFER, is_always_deferred),
    Rule(Reason.TOOL_ALWAYS, Outcome.LOAD, is_tool_always),
    Rule(Reason.TOOL_DEFER, Outcome.DEFER, is_tool_defer),
    Rule(Reason.SERVER_DEFER, Outcome.DEFER, is_server_defer),
    Rule(Reason.META_ALWAYS_LOAD, Outcome.LOAD, is_meta_always_load),
    Rule(Reason.SERVER_LOAD, Outcome.LOAD, is_server_load),
    Rule(Reason.BUILTIN, Outcome.LOAD, is_builtin_that_stays),
    Rule(Reason.MODE_ALWAYS, Outcome.DEFER, is_mode_always),
    Rule(Reason.OVER_THRESHOLD, Outcome.DEFER, is_over_threshold),
    Rule(Reason.UNDER_THRESHOLD, Outcome.LOAD, is_under_threshold),
    UNCERTAIN,
)
