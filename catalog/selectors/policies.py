"""Policies for pages, with an explanation of every field."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, zip_longest
from typing import NamedTuple

from catalog.domain import globs
from catalog.domain.choices import Mode, ThresholdUnit
from catalog.domain.errors import NotFound
from catalog.domain.limits import GLOBS_REMARKED, GLOBS_TRIED
from catalog.domain.policy import DEFAULT_CONTEXT_WINDOW, DEFAULT_SLUG, DEFAULT_THRESHOLDS
from catalog.domain.policy import Policy as DomainPolicy
from catalog.domain.thresholds import Measure, ThresholdTotals, measure_thresholds
from catalog.models import DecidedList, Policy, Tool
from catalog.selectors.changes import Difference, list_differences
from catalog.selectors.facts import read_policy

VERSION_ROWS = 20
ALL_VERSION_ROWS = 500
QUALIFIED = "mcp__"
UNIT_WORDS = {
    ThresholdUnit.CHARS: "characters",
    ThresholdUnit.TOKENS: "tokens",
    ThresholdUnit.TOOLS: "tools",
    ThresholdUnit.CONTEXT_PERCENT: "% of the context window",
    ThresholdUnit.CONTEXT_USED: "% of the context used",
}
LABELS = {
    "defer_builtins": "Defer built-ins",
    "max_results": "Results",
    "max_sessions": "Most sessions",
    "max_loaded_tools": "Most loaded tools",
    "prompt_budget_tokens": "Prompt budget, in tokens",
    "session_ttl": "Session lifetime",
    "call_timeout_seconds": "Call timeout, in seconds",
    "max_result_tokens": "Longest result, in tokens",
    "record_calls": "Record of calls",
}
# Each group: its heading, then each field's name and what it does in one line.
GROUPS = (
    (
        "What is deferred",
        (
            ("mode", "Always defers, auto defers past the threshold, off loads everything."),
            ("threshold_unit", "What the threshold is measured in."),
            (
                "threshold",
                "Auto defers once the visible tools are past this.",
            ),
            (
                "context_window",
                "Tokens of context assumed when neither a session nor its model's row gives a number.",
            ),
            ("never_defer", "Tools matching one of these patterns always load."),
            ("always_defer", "Tools matching one of these patterns always wait for a search."),
            ("defer_builtins", "Whether the agent's own tools may be deferred too."),
            ("visible", "Only tools matching one of these patterns exist for the agent; unset shows all."),
        ),
    ),
    (
        "Search",
        (
            ("ranker", "How matches are scored."),
            ("max_results", "Tools that one search returns and loads at most."),
            ("score_cutoff", "Hits below this fraction of the best score are dropped; 0 keeps all."),
            (
                "meaning_floor",
                "With a sentence encoder: how near in meaning a tool must be to match where no word does; 1"
                " leaves it to words.",
            ),
            ("search_tool_name", "The name under which the model sees the search tool."),
        ),
    ),
    (
        "What stays loaded",
        (
            ("keep_loaded_tools", "Whether a tool found once stays loaded in later turns."),
            ("keep_on_compaction", "Whether loaded tools survive a compaction of the conversation."),
            ("max_loaded_tools", "Past this many, the least recently used are unloaded; unset is no limit."),
            ("unload_after_idle_turns", "Unloads a tool not used for this many turns; unset is never."),
        ),
    ),
    (
        "The prompt",
        (
            ("prompt_style", "What the system prompt says about deferred tools."),
            ("prompt_budget_tokens", "The prompt is shortened until it fits into this many tokens."),
        ),
    ),
    (
        "MCP gateway",
        (
            ("exposure", "What MCP clients are listed; every visible tool can be called by name either way."),
            ("call_timeout_seconds", "A call that takes longer is ended."),
            ("max_result_tokens", "A longer result is cut, and agents read on; 0 is no limit."),
            (
                "record_calls",
                "What is kept of each call; arguments and results may hold what agents work on, so only an"
                " admin may change this.",
            ),
        ),
    ),
    (
        "Safety and lifetime",
        (
            (
                "quarantine",
                "Locks tools until an admin approves their definition; those known when it is switched on"
                " count as approved.",
            ),
            ("max_sessions", "Sessions kept at once; the longest idle go first."),
            ("session_ttl", "How long a session is kept after its last use."),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class PolicyField:
    label: str
    name: str
    value: str
    explanation: str


@dataclass(frozen=True, slots=True)
class FieldGroup:
    heading: str
    fields: list[PolicyField]


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """`loaded` and `deferred` are None until a worker has decided the policy."""

    policy: Policy
    summary: str
    loaded: int | None
    deferred: int | None


class ToolNames(NamedTuple):
    """The names that a pattern can match."""

    name: str
    tool: str
    server: str


@dataclass(frozen=True, slots=True)
class UnmatchedPattern:
    """`meant` is the same pattern for qualified names, where tools match that."""

    field: str
    pattern: str
    meant: str


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A saved version of a policy, and what that save changed."""

    number: int
    actor: str
    saved_at: datetime
    is_present: bool
    differences: list[Difference]


def policies_for_table() -> list[PolicyRow]:
    decided = {row.policy_id: row for row in DecidedList.objects.all()}
    return [_row(policy, decided.get(policy.pk)) for policy in Policy.objects.all()]


def find_policy(slug: str) -> Policy:
    policy = Policy.objects.filter(slug=slug).first()
    if policy is None:
        raise NotFound(f"There is no policy named {slug}.")
    return policy


def choose_policy(slug: str) -> Policy | None:
    """The policy asked for, else `default`: shared links must not break."""
    known = {policy.slug: policy for policy in Policy.objects.filter(slug__in=[slug, DEFAULT_SLUG])}
    return known.get(slug) or known.get(DEFAULT_SLUG)


def policy_slugs() -> list[str]:
    return list(Policy.objects.order_by("slug").values_list("slug", flat=True))


def summarize(policy: Policy) -> str:
    """When this policy defers, in one sentence."""
    if policy.mode == Mode.OFF:
        return "Every tool loads up front; search is off."
    if policy.mode == Mode.ALWAYS:
        return "Every tool waits for a search, unless a rule says otherwise."
    unit = ThresholdUnit(policy.threshold_unit)
    return f"Tools wait for a search past {_threshold(policy)} {UNIT_WORDS[unit]}."


def explain_fields(policy: Policy) -> list[FieldGroup]:
    return [
        FieldGroup(heading, [_field(policy, name, explanation) for name, explanation in fields])
        for heading, fields in GROUPS
    ]


def label_of(name: str) -> str:
    return LABELS.get(name, name.replace("_", " ").capitalize())


def read_kept_thresholds(policy: Policy) -> tuple[Measure, ...]:
    """The catalog in every unit against its limit, from the stored sums; empty before there are any."""
    decided = DecidedList.objects.filter(policy=policy).first()
    if decided is None:
        return ()
    return measure_thresholds(read_policy(policy), ThresholdTotals(tools=decided.tools, chars=decided.chars))


def find_unmatched_patterns(policy: DomainPolicy) -> list[UnmatchedPattern]:
    """The first of the patterns that count that no listed tool matches: a slip, or for a tool to come."""
    lists = {"visible": policy.visible or ()}
    if policy.mode is not Mode.OFF:
        lists |= {"never_defer": policy.never_defer, "always_defer": policy.always_defer}
    if not any(lists.values()):
        return []
    names = Tool.objects.listed().order_by().values_list("qualified_name", "name", "server__name")
    tools = [ToolNames(*each) for each in names]
    unmatched = (
        UnmatchedPattern(field, pattern, _meant_by(pattern, tools))
        for field, patterns in lists.items()
        for pattern in globs.find_idle(patterns[:GLOBS_TRIED], tools)
    )
    return list(islice(unmatched, GLOBS_REMARKED))


def read_version(policy: Policy, number: str) -> DomainPolicy:
    """The policy as of a version, or the current one. Raises NotFound."""
    if not number:
        return read_policy(policy)
    version = policy.versions.filter(number=number).first() if number.isdecimal() else None
    if version is None:
        raise NotFound(f"policy {policy.slug} has no version {number}")
    return read_policy(policy).change(version.fields)


def versions_of(policy: Policy, *, limit: int = VERSION_ROWS) -> list[VersionRow]:
    """The newest first; the oldest has nothing to compare with."""
    versions = list(policy.versions.order_by("-number")[: limit + 1])
    return [
        VersionRow(
            number=version.number,
            actor=version.actor,
            saved_at=version.saved_at,
            is_present=version.number == policy.version,
            differences=list_differences(older.fields, version.fields) if older else [],
        )
        for version, older in zip_longest(versions, versions[1:])
    ][:limit]


def _meant_by(pattern: str, tools: Sequence[ToolNames]) -> str:
    qualified = f"{QUALIFIED}{pattern}"
    return "" if any(globs.find_idle([qualified], tools)) else qualified


def _row(policy: Policy, decided: DecidedList | None) -> PolicyRow:
    if decided is None:
        return PolicyRow(policy, summarize(policy), None, None)
    return PolicyRow(policy, summarize(policy), decided.tools - decided.deferred, decided.deferred)


def _field(policy: Policy, name: str, explanation: str) -> PolicyField:
    return PolicyField(
        label=label_of(name),
        name=name,
        value=_value_in_force(policy, name),
        explanation=explanation,
    )


def _value_in_force(policy: Policy, name: str) -> str:
    if name == "threshold":
        return _threshold(policy)
    if name == "context_window" and policy.context_window is None:
        return _in_words(DEFAULT_CONTEXT_WINDOW)
    return _in_words(getattr(policy, name))


def _threshold(policy: Policy) -> str:
    value = policy.threshold
    if value is None:
        value = DEFAULT_THRESHOLDS[ThresholdUnit(policy.threshold_unit)]
    return _in_words(value)


def _in_words(value: object) -> str:
    match value:
        case None:
            return "unset"
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return f"{value:,.10g}"
        case timedelta():
            return f"{value.days} days" if value.days and not value.seconds else str(value)
        case list():
            return ", ".join(str(item) for item in value) or "none"
        case _:
            return str(value)
