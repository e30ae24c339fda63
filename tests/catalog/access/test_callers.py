"""API keys by REST: valid keys, scopes, limits, and the form of a refusal."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from catalog.access import rates
from catalog.access.actors import COMMAND_LINE
from catalog.access.callers import Caller
from catalog.domain.rates import Window
from catalog.models import ApiKey
from catalog.services import keys
from tests.harness.rows import make_policy
from tests.sessions.api.calling import ROOT, Agent, fill_catalog, make_agent

pytestmark = pytest.mark.django_db

POLL = "/policies/default/tools"
PATHS = (POLL, "/sessions", "/tools", "/servers/github")
HEADERS = ("", "Bearer", "Bearer nonsense", "Basic abc", "Bearer tk_00000000_" + "a" * 43)


@pytest.fixture
def agent() -> Agent:
    fill_catalog()
    return make_agent()


class TestAuthentication:
    @pytest.mark.parametrize("path", PATHS)
    @pytest.mark.parametrize("header", HEADERS)
    def test_no_key_and_unknown_keys_are_one_answer(self, agent: Agent, path: str, header: str) -> None:
        answer = agent.client.get(ROOT + path, headers={"Authorization": header} if header else {})
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["detail"] == "Send a key that is in force: Authorization: Bearer <key>."

    @pytest.mark.parametrize("path", PATHS)
    def test_revocation_and_expiry_are_in_force_at_once(self, agent: Agent, path: str) -> None:
        assert agent.get(path).status_code == 200
        ApiKey.objects.filter(pk=agent.key.pk).update(expires_at=timezone.now())
        assert agent.get(path).status_code == 401
        ApiKey.objects.filter(pk=agent.key.pk).update(expires_at=timezone.now() + timedelta(days=1))
        assert agent.get(path).status_code == 200
        keys.revoke_key(key=agent.key, actor=COMMAND_LINE)
        assert agent.get(path).status_code == 401

    @pytest.mark.parametrize("path", PATHS)
    def test_right_prefix_with_a_wrong_secret_is_refused(self, agent: Agent, path: str) -> None:
        wrong = Agent(agent.key, agent.text[:-1] + ("a" if agent.text[-1] != "a" else "b"))
        assert wrong.get(path).status_code == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/servers"),
        ("PATCH", "/servers/github"),
        ("DELETE", "/servers/github"),
        ("POST", "/servers/github/refresh"),
        ("PATCH", "/tools/mcp__github__create_issue"),
        ("GET", "/policies"),
        ("POST", "/policies"),
        ("PATCH", "/policies/default"),
        ("DELETE", "/policies/default"),
        ("POST", "/policies/default/preview"),
        ("POST", "/config"),
        ("GET", "/config"),
        ("GET", "/keys"),
        ("POST", "/keys"),
        ("POST", "/models"),
    ],
)
def test_admin_call_with_an_agent_key_is_403_whatever_its_body(agent: Agent, method: str, path: str) -> None:
    answer = agent.call(method, path, {"nonsense": True} if method != "GET" else None)
    assert answer.status_code == 403
    assert answer.headers["Content-Type"] == "application/problem+json"


class TestLimits:
    @pytest.mark.parametrize("path", [POLL, "/sessions"])
    def test_past_the_limit_is_429_with_a_time(self, agent: Agent, path: str, monkeypatch: Any) -> None:
        monkeypatch.setattr(rates, "_window", Window(clock=lambda: 120.0))
        limited = make_agent(rate_limit_per_minute=2)
        assert [limited.get(path).status_code for _ in range(3)] == [200, 200, 429]
        assert 1 <= int(limited.get(path).headers["Retry-After"]) <= 60
        assert agent.get(path).status_code == 200

    def test_body_over_one_mebibyte_is_413(self, agent: Agent) -> None:
        assert agent.call("POST", "/sessions", {"model": "x" * 2**20}).status_code == 413

    def test_config_may_have_ten_mebibytes(self) -> None:
        admin = make_agent(admin=True)
        server = {"url": "https://mcp.example.com/", "note": "x" * 2**20}
        for copies, status in ((9, 200), (10, 413)):
            document = {"mcpServers": {f"server-{number}": server for number in range(copies)}}
            answer = admin.call("POST", "/config?dry_run=true", document)
            assert answer.status_code == status, answer.content[:200]


class TestRefusals:
    def test_unknown_address_is_a_problem(self, agent: Agent) -> None:
        for path in ("/nothing", "/sessions/not-a-uuid", "/sessions/not-a-uuid/tools"):
            answer = agent.get(path)
            assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")

    @pytest.mark.parametrize(("method", "path"), [("PUT", "/sessions"), ("POST", POLL), ("DELETE", "/tools")])
    def test_wrong_method_is_a_problem_that_says_what_is_possible(
        self, agent: Agent, method: str, path: str
    ) -> None:
        answer = agent.call(method, path, {})
        assert (answer.status_code, answer.headers["Content-Type"]) == (405, "application/problem+json")
        assert "GET" in answer.headers["Allow"]

    @pytest.mark.parametrize(
        "body", [b"{", b"[]", b'{"model": NaN}', b'{"model": "\\u0000"}', b'{"model": "\\ud800"}', b"\xff"]
    )
    def test_body_that_cannot_be_read_is_422(self, agent: Agent, body: bytes) -> None:
        answer = agent.client.post(
            f"{ROOT}/sessions",
            data=body,
            content_type="application/json",
            headers={"Authorization": f"Bearer {agent.text}"},
        )
        assert answer.status_code == 422
        assert answer.json()["errors"]


def test_policy_is_read_once(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    policy = make_policy()
    caller = Caller(actor=COMMAND_LINE, key_id=1, policy_id=policy.pk, is_admin=False)
    with django_assert_num_queries(1):
        assert caller.policy == caller.use_policy(None) == policy
