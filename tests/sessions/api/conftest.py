"""Every test of the API has a small catalog and an agent with a key for the default policy."""

import pytest

from tests.sessions.api.calling import Agent, fill_catalog, make_agent


@pytest.fixture
def agent(db: None) -> Agent:
    fill_catalog()
    return make_agent()
