"""Every test of the API has a small catalog and an agent with a key for the default policy."""

from collections.abc import Iterator

import pytest

from sessions.reading import models_known, offers
from sessions.services import records
from tests.sessions.api.calling import Agent, fill_catalog, make_agent


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Versions begin again with every test, so nothing may be remembered from the one before."""
    offers.forget()
    models_known.forget()
    yield
    records.drop_notes()


@pytest.fixture
def agent(db: None) -> Agent:
    fill_catalog()
    return make_agent()
