"""The policy: how deferral and search behave for the agents that use it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from datetime import timedelta
from functools import partial
from typing import Any

from catalog.domain.choices import (
    Exposure,
    Kind,
    Loading,
    Mode,
    Outcome,
    PromptStyle,
    Quarantine,
    Ranker,
    Reason,
    RecordCalls,
    ThresholdUnit,
    Transport,
)
from catalog.domain.limits import CALL_SECONDS, COUNT, RESULTS
from catalog.domain.problems import Problems, join_place, snake_case
from catalog.domain.values import (
    read_choice,
    read_duration,
    read_flag,
    read_globs,
    read_matching,
    read_number,
    read_whole_number,
)

__all__ = [
    "DEFAULT_MEANING_FLOOR",
    "DEFAULT_THRESHOLDS",
    "MAX_THRESHOLD",
    "Exposure",
    "Kind",
    "Loading",
    "Mode",
    "Outcome",
    "Policy",
    "PromptStyle",
    "Quarantine",
    "Ranker",
    "Reason",
    "RecordCalls",
    "ThresholdUnit",
    "Transport",
    "read_field",
]

DEFAULT_THRESHOLDS: Mapping[ThresholdUnit, float] = {
    ThresholdUnit.CHARS: 10_000,
    ThresholdUnit.TOKENS: 2_500,
    ThresholdUnit.TOOLS: 15,
    ThresholdUnit.CONTEXT_PERCENT: 10,
    ThresholdUnit.CONTEXT_USED: 10,
}
# What the gateway alone reads: a change of these decides nothing about any tool.
_GATEWAY_FIELDS = ("exposure", "call_timeout_seconds", "max_result_tokens", "record_calls")
_PERCENT_UNITS = (ThresholdUnit.CONTEXT_PERCENT, ThresholdUnit.CONTEXT_USED)
DEFAULT_CONTEXT_WINDOW = 200_000
# Of the right answers that all-MiniLM-L6-v2 puts first on the quality sets, 19 in 20 are this similar; of
# queries of random letters, asked of the same tools, 1 in 25 finds anything so similar.
DEFAULT_MEANING_FLOOR = 0.3
DEFAULT_SLUG = "default"  # the policy that is there from the start
MAX_THRESHOLD = 10**12
_SLUG = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Contract sections 5.1, 8 and 10. An unset `threshold` is the unit's default, an unset `context_window`
    200,000 tokens: `limit` and `window` are the effective values.
    """

    slug: str = DEFAULT_SLUG
    mode: Mode = Mode.ALWAYS
    threshold_unit: ThresholdUnit = ThresholdUnit.CHARS
    threshold: float | None = None
    context_window: int | None = None
    never_defer: tuple[str, ...] = ()
    always_defer: tuple[str, ...] = ()
    visible: tuple[str, ...] | None = None
    defer_builtins: bool = False
    max_results: int = 5
    keep_loaded_tools: bool = True
    keep_on_compaction: bool = True
    max_loaded_tools: int | None = None
    unload_after_idle_turns: int | None = None
    ranker: Ranker = Ranker.BM25F
    score_cutoff: float = 0
    meaning_floor: float = DEFAULT_MEANING_FLOOR
    search_tool_name: str = "search_tools"
    prompt_style: PromptStyle = PromptStyle.CATEGORIES
    prompt_budget_tokens: int = 400
    quarantine: Quarantine = Quarantine.OFF
    max_sessions: int = 100_000
    session_ttl: timedelta = timedelta(days=30)
    exposure: Exposure = Exposure.SEARCH
    call_timeout_seconds: int = 120
    max_result_tokens: int = 20_000  # 0 is no limit
    record_calls: RecordCalls = RecordCalls.NAMES

    @property
    def limit(self) -> float:
        """The effective threshold, in the policy's unit."""
        return DEFAULT_THRESHOLDS[self.threshold_unit] if self.threshold is None else self.threshold

    @property
    def window(self) -> int:
        """The context window, in tokens, of sessions without one whose model has none."""
        return DEFAULT_CONTEXT_WINDOW if self.context_window is None else self.context_window

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object], *, place: str = "policy") -> "Policy":
        """Read a policy written in camelCase or snake_case; null is the default.

        Raises InvalidInput with every mistake, each at its place below `place`.
        """
        return cls().change(mapping, place=place)

    def change(self, mapping: Mapping[str, object], *, place: str = "policy") -> "Policy":
        """This policy with some fields changed. A new unit without a threshold takes the unit's default."""
        problems = Problems()
        changes = _read_changes(mapping, place, problems)
        if changes.get("threshold_unit", self.threshold_unit) is not self.threshold_unit:
            changes.setdefault("threshold", None)
        changed = replace(self, **changes)
        if changed.threshold_unit in _PERCENT_UNITS and changed.limit > 100:
            problems.add(join_place(place, "threshold"), "must be a percentage from 0 to 100")
        problems.raise_if_any()
        return changed

    def decides_as(self, other: "Policy") -> bool:
        """Whether both decide the same, whatever they are: only fields of the gateway differ, if any."""
        return replace(other, **{name: getattr(self, name) for name in _GATEWAY_FIELDS}) == self

    def to_mapping(self) -> dict[str, object]:
        """Plain JSON values under snake_case names; `session_ttl` in seconds, an unset threshold as null."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}


_READERS: Mapping[str, Callable[[object], object]] = {
    "slug": partial(read_matching, pattern=_SLUG, wanted="1 to 64 letters, digits, - or _"),
    "mode": partial(read_choice, choices=Mode),
    "threshold_unit": partial(read_choice, choices=ThresholdUnit),
    "threshold": partial(read_number, least=0, most=MAX_THRESHOLD),
    "context_window": partial(read_whole_number, least=1, most=COUNT),
    "never_defer": read_globs,
    "always_defer": read_globs,
    "visible": read_globs,
    "defer_builtins": read_flag,
    "max_results": partial(read_whole_number, least=1, most=RESULTS),
    "keep_loaded_tools": read_flag,
    "keep_on_compaction": read_flag,
    "max_loaded_tools": partial(read_whole_number, least=1, most=COUNT),
    "unload_after_idle_turns": partial(read_whole_number, least=1, most=COUNT),
    "ranker": partial(read_choice, choices=Ranker),
    "score_cutoff": partial(read_number, least=0, most=1),
    "meaning_floor": partial(read_number, least=0, most=1),
    "search_tool_name": partial(read_matching, pattern=_TOOL_NAME, wanted="1 to 64 letters, digits, - or _"),
    "prompt_style": partial(read_choice, choices=PromptStyle),
    "prompt_budget_tokens": partial(read_whole_number, least=0, most=COUNT),
    "quarantine": partial(read_choice, choices=Quarantine),
    "max_sessions": partial(read_whole_number, least=1, most=COUNT),
    "session_ttl": read_duration,
    "exposure": partial(read_choice, choices=Exposure),
    "call_timeout_seconds": partial(read_whole_number, least=1, most=CALL_SECONDS),
    "max_result_tokens": partial(read_whole_number, least=0, most=COUNT),
    "record_calls": partial(read_choice, choices=RecordCalls),
}
_DEFAULTS: Mapping[str, object] = {
    field.name: field.default for field in fields(Policy) if field.default is not MISSING
}


def read_field(name: str, value: object) -> object:
    """Read one field of a policy; raises BadValueError."""
    return _READERS[name](value)


def _read_changes(mapping: Mapping[str, object], place: str, problems: Problems) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for key, value in mapping.items():
        name, key_place = snake_case(str(key)), join_place(place, key)
        if name not in _READERS:
            problems.add(key_place, "is not a field of a policy")
        elif name in changes:
            problems.add(key_place, "is given twice")
        elif value is None:
            changes[name] = _DEFAULTS[name]
        else:
            changes[name] = problems.read(key_place, value, _READERS[name], _DEFAULTS[name])
    return changes


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, timedelta):
        return int(value.total_seconds())
    return str(value) if isinstance(value, str) else value
