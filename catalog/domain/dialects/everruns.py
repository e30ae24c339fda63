"""Everruns: the capability `tool_search`, by name in a list or with its settings in an object."""

from collections.abc import Mapping
from functools import partial

from catalog.domain.choices import Mode, Ranker, ThresholdUnit
from catalog.domain.dialects.keys import refuse_near, refuse_unknown
from catalog.domain.policy import DEFAULT_THRESHOLDS, Policy, read_field
from catalog.domain.problems import Problems, join_place
from catalog.domain.values import name_type

CAPABILITY = "tool_search"
_PLACE = f"capabilities.{CAPABILITY}"
_SETTINGS: Mapping[str, object] = {
    "threshold": DEFAULT_THRESHOLDS[ThresholdUnit.TOOLS],
    "never_defer": [],
}


def is_present(document: Mapping[str, object]) -> bool:
    return document.get("capabilities") is not None


def parse(document: Mapping[str, object], problems: Problems) -> dict[str, object]:
    """Capabilities without `tool_search` turn search off; a misspelt name is a mistake."""
    capabilities = document.get("capabilities")
    if isinstance(capabilities, list | Mapping):
        refuse_near(capabilities, (CAPABILITY,), "capabilities", problems)
    if isinstance(capabilities, list):
        return _read_settings({}, problems) if CAPABILITY in capabilities else {"mode": str(Mode.OFF)}
    if not isinstance(capabilities, Mapping):
        problems.add("capabilities", f"must be a list or an object, not {name_type(capabilities)}")
        return {}
    if CAPABILITY not in capabilities:
        return {"mode": str(Mode.OFF)}
    return _read_settings(problems.read_object(_PLACE, capabilities[CAPABILITY]), problems)


def express(policy: Policy) -> dict[str, object] | None:
    """The capability with the same effect, or None when a number of tools cannot express it."""
    if policy.mode == Mode.OFF:
        return {"capabilities": []}
    if policy.mode == Mode.AUTO and policy.threshold_unit != ThresholdUnit.TOOLS:
        return None
    threshold = policy.limit if policy.mode == Mode.AUTO else 0
    return {
        "capabilities": {CAPABILITY: {"threshold": threshold, "never_defer": list(policy.never_defer)}},
    }


def _read_settings(settings: Mapping[str, object], problems: Problems) -> dict[str, object]:
    refuse_unknown(settings, tuple(_SETTINGS), _PLACE, problems)
    given: dict[str, object] = {}
    for key, default in _SETTINGS.items():
        value = settings.get(key)
        read = problems.read(
            join_place(_PLACE, key), default if value is None else value, partial(read_field, key), default
        )
        given[key] = list(read) if isinstance(read, tuple) else read
    return {
        "mode": str(Mode.AUTO),
        "threshold_unit": str(ThresholdUnit.TOOLS),
        "ranker": str(Ranker.OVERLAP),
        "max_results": 8,
        "score_cutoff": 0.5,
        "defer_builtins": True,
        **given,
    }
