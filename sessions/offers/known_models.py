"""The table of language models, cached for a second."""

import time

from catalog.domain.model_names import fits, order_patterns
from catalog.models import ModelSupport
from catalog.process_memory import remember
from sessions.offers.rendering.formats import ModelAbility

LOOK_AGAIN_SECONDS = 1.0

ModelRows = list[tuple[str, str, bool, int | None]]
_seen: tuple[float, ModelRows] = (float("-inf"), [])


def find_ability(model: str) -> ModelAbility | None:
    """The row with the longest pattern that fits the name; None when the model is unknown."""
    for pattern, provider, hosted_search, context_window in _read_rows() if model else ():
        if fits(pattern, model):
            return ModelAbility(provider, hosted_search, context_window)
    return None


def find_window(model: str) -> int | None:
    """The context window of a model's row, in tokens; None where it has no row, or the row no window."""
    ability = find_ability(model)
    return None if ability is None else ability.context_window


def clear() -> None:
    global _seen  # noqa: PLW0603  one table, remembered for a second
    _seen = (float("-inf"), [])


def _read_rows() -> ModelRows:
    global _seen  # noqa: PLW0603
    read_at, rows = _seen
    if time.monotonic() - read_at > LOOK_AGAIN_SECONDS:
        columns = ("name_pattern", "provider", "hosted_search", "context_window")
        rows = sorted(ModelSupport.objects.values_list(*columns), key=lambda row: order_patterns(row[0]))
        _seen = (time.monotonic(), rows)
    return rows


remember("known models", clear)
