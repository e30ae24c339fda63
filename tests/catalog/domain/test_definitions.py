"""Definitions of tools: what an admin's mark and the definition itself say."""

import pytest

from catalog.domain.definitions import is_read_only


@pytest.mark.parametrize(
    ("mark", "annotations", "expected"),
    [
        (None, {}, False),
        (None, {"readOnlyHint": True}, True),
        (None, {"readOnlyHint": False}, False),
        (None, {"readOnlyHint": "yes"}, False),
        (True, {"readOnlyHint": False}, True),
        (False, {"readOnlyHint": True}, False),
    ],
)
def test_an_admins_mark_counts_before_the_definitions_hint(
    mark: bool | None, annotations: dict[str, object], expected: bool
) -> None:
    assert is_read_only(mark, annotations) is expected
