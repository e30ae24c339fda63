"""Policies as pages show them: every field with what it does."""

from dataclasses import dataclass
from datetime import timedelta

from catalog.domain.choices import Mode, ThresholdUnit
from catalog.domain.errors import NotFound
from catalog.domain.policy import DEFAULT_THRESHOLDS
from catalog.models import Policy

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
            ("context_window", "Tokens of context assumed when a session does not give its own."),
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
        "Safety and lifetime",
        (
            ("quarantine", "Which tools are held back until somebody approves them."),
            ("max_sessions", "Sessions kept at once; the longest idle go first."),
            ("session_ttl", "How long a session is kept after its last use."),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Field:
    label: str
    name: str
    value: str
    explanation: str


@dataclass(frozen=True, slots=True)
class FieldGroup:
    heading: str
    fields: list[Field]


@dataclass(frozen=True, slots=True)
class PolicyRow:
    policy: Policy
    summary: str


def policies_for_table() -> list[PolicyRow]:
    return [PolicyRow(policy, summarize(policy)) for policy in Policy.objects.all()]


def find_policy(slug: str) -> Policy:
    policy = Policy.objects.filter(slug=slug).first()
    if policy is None:
        raise NotFound(f"There is no policy named {slug}.")
    return policy


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


def _field(policy: Policy, name: str, explanation: str) -> Field:
    return Field(
        label=LABELS.get(name, name.replace("_", " ").capitalize()),
        name=name,
        value=_threshold(policy) if name == "threshold" else _in_words(getattr(policy, name)),
        explanation=explanation,
    )


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
