"""PizzaPi: `toolSearch` beside `mcpServers`. Its threshold counts characters, whatever the key is called."""

from collections.abc import Mapping
from functools import partial

from catalog.domain.choices import Mode, ThresholdUnit
from catalog.domain.dialects.keys import refuse_unknown
from catalog.domain.policy import Policy, read_field
from catalog.domain.problems import Problems, join_place
from catalog.domain.sizes import CHARS_PER_TOKEN
from catalog.domain.values import read_flag

_FIELDS = {"tokenThreshold": "threshold", "maxResults": "max_results", "keepLoadedTools": "keep_loaded_tools"}
_DEFAULTS: Mapping[str, object] = {"tokenThreshold": 10_000, "maxResults": 5, "keepLoadedTools": True}


def is_present(document: Mapping[str, object]) -> bool:
    return document.get("toolSearch") is not None


def parse(document: Mapping[str, object], problems: Problems) -> dict[str, object]:
    section = problems.read_object("toolSearch", document.get("toolSearch"))
    refuse_unknown(section, ("enabled", *_FIELDS), "toolSearch", problems)
    given = {
        "enabled": False,
        **_DEFAULTS,
        **{key: value for key, value in section.items() if value is not None},
    }
    enabled = problems.read("toolSearch.enabled", given["enabled"], read_flag, False)
    changes: dict[str, object] = {
        "mode": str(Mode.AUTO if enabled else Mode.OFF),
        "threshold_unit": str(ThresholdUnit.CHARS),
        "defer_builtins": False,
    }
    for key, field in _FIELDS.items():
        place = join_place("toolSearch", key)
        changes[field] = problems.read(place, given[key], partial(read_field, field), _DEFAULTS[key])
    return changes


def express(policy: Policy) -> dict[str, object] | None:
    """The section with the same effect, or None when a number of characters cannot express it."""
    threshold = _threshold_chars(policy)
    if threshold is None:
        return None
    return {
        "toolSearch": {
            "enabled": policy.mode != Mode.OFF,
            "tokenThreshold": threshold,
            "maxResults": policy.max_results,
            "keepLoadedTools": policy.keep_loaded_tools,
        }
    }


def _threshold_chars(policy: Policy) -> float | None:
    if policy.mode == Mode.ALWAYS:
        return 0
    if policy.threshold_unit == ThresholdUnit.CHARS:
        return policy.limit
    if policy.threshold_unit == ThresholdUnit.TOKENS:
        return int(policy.limit) * CHARS_PER_TOKEN
    if policy.threshold_unit == ThresholdUnit.CONTEXT_PERCENT:
        return int(policy.limit * policy.window / 100) * CHARS_PER_TOKEN
    return 10_000 if policy.mode == Mode.OFF else None
