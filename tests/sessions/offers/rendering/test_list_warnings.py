"""Warnings of a tool list."""

import pytest

from sessions.offers.rendering.formats import Format, Hosted, ListForm
from sessions.offers.rendering.list_warnings import list_warnings

PAYS = {"full": 1000, "sent": 100, "saved": 900}


@pytest.mark.parametrize("hosted", Hosted)
def test_more_than_ten_thousand_deferred_tools_pass_anthropics_limit(hosted: Hosted) -> None:
    form = ListForm(Format.ANTHROPIC, hosted)
    assert list_warnings(form, deferred=10_000, **PAYS) == []
    (warning,) = list_warnings(form, deferred=10_001, **PAYS)
    assert warning == "10,001 tools are deferred; the Anthropic API searches 10,000 at most."


def test_other_forms_have_no_such_limit() -> None:
    for format in (Format.MCP, Format.STUB, Format.OPENAI):
        assert list_warnings(ListForm(format), deferred=10_001, **PAYS) == []


def test_deferring_that_costs_more_is_told_in_every_form() -> None:
    for format in Format:
        (warning,) = list_warnings(ListForm(format), deferred=1, full=80, sent=191, saved=-111)
        assert warning.startswith(
            "Deferring costs 111 tokens more here: 191 are sent, 80 with every tool loaded."
        )
        assert "Load all tools" in warning
        assert list_warnings(ListForm(format), deferred=1, full=80, sent=80, saved=0) == []
        assert list_warnings(ListForm(format), deferred=0, full=80, sent=80, saved=0) == []
