"""The rules that decide one tool, in order. The first that applies decides and gives the reason."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from catalog.domain.choices import Kind, Loading, Mode, Outcome, Reason
from catalog.domain.facts import ToolFacts
from catalog.domain.globs import Matches
from catalog.domain.policy import Policy


@dataclass(frozen=True, slots=True)
class Situation:
    """The inputs of the rules besides the tool; made once for many tools."""

    policy: Policy
    over: bool | None  # None: the threshold cannot be computed
    is_never_deferred: Matches
    is_always_deferred: Matches
    rules: tuple["Rule", ...] = ()  # those that hold here, in their order


def in_any_situation(_situation: Situation) -> bool:
    return True


def to_any_tool(_tool: ToolFacts, _situation: Situation) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Rule:
    """`holds` is evaluated once for all tools, `applies` for each tool where the rule holds."""

    reason: Reason
    outcome: Outcome
    _: KW_ONLY
    holds: Callable[[Situation], bool] = in_any_situation
    applies: Callable[[ToolFacts, Situation], bool] = to_any_tool


def is_search_tool(tool: ToolFacts, situation: Situation) -> bool:
    return tool.name == situation.policy.search_tool_name


def is_search_off(situation: Situation) -> bool:
    return situation.policy.mode == Mode.OFF


def has_never_defer(situation: Situation) -> bool:
    return bool(situation.policy.never_defer)


def is_never_deferred(tool: ToolFacts, situation: Situation) -> bool:
    return situation.is_never_deferred(tool)


def has_always_defer(situation: Situation) -> bool:
    return bool(situation.policy.always_defer)


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


def keeps_builtins(situation: Situation) -> bool:
    return not situation.policy.defer_builtins


def is_builtin_that_stays(tool: ToolFacts, _situation: Situation) -> bool:
    return tool.kind == Kind.BUILTIN and not tool.should_defer


def is_mode_always(situation: Situation) -> bool:
    return situation.policy.mode == Mode.ALWAYS


def is_over_threshold(situation: Situation) -> bool:
    return situation.policy.mode == Mode.AUTO and situation.over is True


def is_under_threshold(situation: Situation) -> bool:
    return situation.policy.mode == Mode.AUTO and situation.over is False


def is_uncertain(situation: Situation) -> bool:
    return situation.policy.mode == Mode.AUTO and situation.over is None


UNCERTAIN = Rule(Reason.UNCERTAIN, Outcome.LOAD, holds=is_uncertain)

RULES: tuple[Rule, ...] = (
    Rule(Reason.SEARCH_TOOL, Outcome.LOAD, applies=is_search_tool),
    Rule(Reason.SEARCH_OFF, Outcome.LOAD, holds=is_search_off),
    Rule(Reason.NEVER_DEFER, Outcome.LOAD, holds=has_never_defer, applies=is_never_deferred),
    Rule(Reason.ALWAYS_DEFER, Outcome.DEFER, holds=has_always_defer, applies=is_always_deferred),
    Rule(Reason.TOOL_ALWAYS, Outcome.LOAD, applies=is_tool_always),
    Rule(Reason.TOOL_DEFER, Outcome.DEFER, applies=is_tool_defer),
    Rule(Reason.SERVER_DEFER, Outcome.DEFER, applies=is_server_defer),
    Rule(Reason.META_ALWAYS_LOAD, Outcome.LOAD, applies=is_meta_always_load),
    Rule(Reason.SERVER_LOAD, Outcome.LOAD, applies=is_server_load),
    Rule(Reason.BUILTIN, Outcome.LOAD, holds=keeps_builtins, applies=is_builtin_that_stays),
    Rule(Reason.MODE_ALWAYS, Outcome.DEFER, holds=is_mode_always),
    Rule(Reason.OVER_THRESHOLD, Outcome.DEFER, holds=is_over_threshold),
    Rule(Reason.UNDER_THRESHOLD, Outcome.LOAD, holds=is_under_threshold),
    UNCERTAIN,
)


def rules_that_hold(situation: Situation) -> tuple[Rule, ...]:
    return tuple(rule for rule in RULES if rule.holds(situation))
