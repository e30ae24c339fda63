"""Claude: one variable, `ENABLE_TOOL_SEARCH`, in `env` beside `mcpServers`."""

import re
from collections.abc import Mapping

from catalog.domain.choices import Mode, ThresholdUnit
from catalog.domain.policy import DEFAULT_THRESHOLDS, Policy
from catalog.domain.problems import Problems
from catalog.domain.values import name_type

VARIABLE = "ENABLE_TOOL_SEARCH"
_PLACE = f"env.{VARIABLE}"
_MODES = {"true": Mode.ALWAYS, "false": Mode.OFF}
_AUTO = re.compile(r"auto(?::([1-9][0-9]?))?")
_DEFAULT_PERCENT = DEFAULT_THRESHOLDS[ThresholdUnit.CONTEXT_PERCENT]
_MAX_SHOWN_CHARS = 40


def is_present(document: Mapping[str, object]) -> bool:
    env = document.get("env")
    return isinstance(env, Mapping) and env.get(VARIABLE) is not None


def parse(document: Mapping[str, object], problems: Problems) -> dict[str, object]:
    value = problems.read_object("env", document.get("env")).get(VARIABLE)
    text = str(value).lower() if isinstance(value, bool) else value
    if not isinstance(text, str):
        problems.add(_PLACE, f"must be text, not {name_type(value)}")
        return {}
    if text in _MODES:
        return {"mode": str(_MODES[text])}
    percent = _AUTO.fullmatch(text)
    if not percent:
        shown = ascii(text[:_MAX_SHOWN_CHARS])
        problems.add(_PLACE, f"is {shown}, but must be true, false, auto or auto:N with N from 1 to 99")
        return {}
    threshold = int(percent[1]) if percent[1] else _DEFAULT_PERCENT
    return {
        "mode": str(Mode.AUTO),
        "threshold_unit": str(ThresholdUnit.CONTEXT_PERCENT),
        "threshold": threshold,
    }


def express(policy: Policy) -> dict[str, object] | None:
    """The variable with the same effect, or None when a percentage from 1 to 99 cannot express it."""
    value = {Mode.ALWAYS: "true", Mode.OFF: "false"}.get(policy.mode) or _express_auto(policy)
    return {"env": {VARIABLE: value}} if value else None


def _express_auto(policy: Policy) -> str | None:
    percent = policy.limit
    if policy.threshold_unit != ThresholdUnit.CONTEXT_PERCENT or percent not in range(1, 100):
        return None
    return "auto" if percent == _DEFAULT_PERCENT else f"auto:{int(percent)}"
