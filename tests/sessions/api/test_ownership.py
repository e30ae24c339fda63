"""A key reaches its own sessions and its own policy, and nobody else's."""

from typing import Any

import pytest

from catalog.access.actors import COMMAND_LINE
from catalog.services import policies
from tests.sessions.api.calling import Agent, make_agent

pytestmark = pytest.mark.django_db


class TestOwnership:
    def test_another_keys_session_is_not_found_by_any_call(self, agent: Agent) -> None:
        session = agent.begin()
        for other in (make_agent(), make_agent(admin=True)):
            for path in (session.path, f"{session.path}/tools", f"{session.path}/snapshots"):
                assert other.get(path).status_code == 404
            bodies: dict[str, Any] = {
                "search": {"query": "a"},
                "unload": {"names": []},
                "restore": {"snapshot": 1},
            }
            for what in ("search", "turns", "unload", "compact", "snapshots", "restore", "reset"):
                body = bodies.get(what, {})
                assert other.call("POST", f"{session.path}/{what}", body).status_code == 404
            assert other.call("DELETE", session.path).status_code == 404

    def test_agent_polls_its_own_policy_only(self, agent: Agent) -> None:
        policies.create_policy(wanted={"slug": "other"}, actor=COMMAND_LINE)
        assert agent.get("/policies/other/tools").status_code == 404
        assert agent.get("/policies/none/tools").status_code == 404
        assert make_agent(admin=True).get("/policies/other/tools").status_code == 200
