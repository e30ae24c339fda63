"""What is known of language models: a table that admins edit, looked at again every second."""

import time

from catalog.domain.model_names import fits, order_patterns
from catalog.models import ModelSupport
from sessions.domain.formats import ModelAbility

LOOK_AGAIN_SECONDS = 1.0

Rows = list[tuple[str, str, bool, int | None]]
_seen: tuple[float, Rows] = (float("-inf"), [])


def find_ability(model: str) -> ModelAbility | None:
    """Of the patterns that fit the name, the longest counts; None when the model is unknown."""
    for pattern, provider, hosted_search, context_window in _read_rows() if model else ():
        if fits(pattern, model):
            return ModelAbility(provider, hosted_search, context_window)
    return None


def find_window(model: str) -> int | None:
    """The context window of a model's row, in tokens; None where it has no row, or the row no window."""
    ability = find_ability(model)
    return None if ability is None else ability.context_window


def forget() -> None:
    global _seen  # noqa: PLW0603  one table, remembered for a second
    _seen = (float("-inf"), [])


def _read_rows() -> Rows:
    global _seen  # noqa: PLW0603
    read_at, rows = _seen
    if time.monotonic() - read_at > LOOK_AGAIN_SECONDS:
        columns = ("name_pattern", "provider", "hosted_search", "context_window")
        rows = sorted(ModelSupport.objects.values_list(*columns), key=lambda row: order_patterns(row[0]))
        _seen = (time.monotonic(), rows)
    return rows
