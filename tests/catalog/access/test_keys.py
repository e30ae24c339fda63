"""A key is recognised by its hash, also under a new `SECRET_KEY`."""

from functools import partial

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from catalog.access.actors import COMMAND_LINE
from catalog.access.keys import recognise
from catalog.services import keys

pytestmark = pytest.mark.django_db


class TestNewSecretKey:
    """A new `SECRET_KEY` with the former one beside it: keys go on, and are soon free of the former one."""

    FORMER, PRESENT = "f" * 20 + "ormer-secret-key", "p" * 20 + "resent-secret-key"

    def test_key_goes_on_and_needs_the_former_one_until_it_was_used(self, settings: Settings) -> None:
        settings.SECRET_KEY = self.FORMER
        made = keys.create_key(name="agent", actor=COMMAND_LINE)
        settings.SECRET_KEY = self.PRESENT
        assert recognise(made.text) is None
        settings.SECRET_KEY_FALLBACKS = [self.FORMER]
        assert recognise(made.text[:-1] + "_") is None
        assert recognise(made.text) is not None
        settings.SECRET_KEY_FALLBACKS = []
        assert recognise(made.text) is not None

    def test_key_of_an_agent_that_only_polls(self, settings: Settings, client: Client) -> None:
        settings.SECRET_KEY = self.FORMER
        made = keys.create_key(name="agent", actor=COMMAND_LINE)
        poll = partial(
            client.get,
            "/api/v1/policies/default/tools",
            headers={"Authorization": f"Bearer {made.text}"},
        )
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = self.PRESENT, [self.FORMER]
        assert poll().status_code == 200
        settings.SECRET_KEY_FALLBACKS = []
        assert poll().status_code == 200

    def test_key_in_its_right_form_is_not_written_again(self, settings: Settings) -> None:
        settings.SECRET_KEY_FALLBACKS = [self.FORMER]
        made = keys.create_key(name="agent", actor=COMMAND_LINE)
        with CaptureQueriesContext(connection) as reads:
            recognise(made.text)
        assert len(reads) == 1
