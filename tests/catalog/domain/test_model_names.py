"""Which pattern of the table of models counts."""

import pytest

from catalog.domain.model_names import choose_pattern

PATTERNS = ["claude-*", "claude-opus-4*", "gpt-[6-9]*", "*"]


@pytest.mark.parametrize(
    ("model", "chosen"),
    [
        ("claude-opus-4-5", "claude-opus-4*"),
        ("Claude-Opus-4-5", "claude-opus-4*"),
        ("claude-haiku-3", "claude-*"),
        ("gpt-7-mini", "gpt-[6-9]*"),
        ("gpt-4", "*"),
    ],
)
def test_longest_that_fits_counts(model: str, chosen: str) -> None:
    assert choose_pattern(model, PATTERNS) == chosen


def test_unknown_model_has_none() -> None:
    assert choose_pattern("llama", ["claude-*"]) is None
