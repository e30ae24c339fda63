"""Who may call: keys in force, their scopes, their limits; and what a refusal looks like."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from catalog.services import policies
from catalog.services.changes import COMMAND_LINE
from sessions.domain.rates import Window
from sessions.models import ApiKey
from sessions.services import keys, rates, records
from tests.sessions.api.calling import ROOT, Agent, make_agent

pytestmark = pytest.mark.django_db

POLL = "/policies/default/tools"
PATHS = (POLL, "/sessions", "/tools", "/servers/github")
HEADERS = ("", "Bearer", "Bearer nonsense", "Basic abc", "Bearer tk_00000000_" + "a" * 43)


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

    def test_next_minute_is_a_new_one(self) -> None:
        now = [0.0]
        window = Window(clock=lambda: now[0])
        assert [window.count(1), window.count(1), window.count(2)] == [1, 2, 1]
        now[0] = 60.0
        assert window.count(1) == 1

    def test_body_over_one_mebibyte_is_413(self, agent: Agent) -> None:
        assert agent.call("POST", "/sessions", {"model": "x" * 2**20}).status_code == 413

    def test_config_may_have_ten_mebibytes(self) -> None:
        admin = make_agent(admin=True)
        server = {"url": "https://mcp.example.com/", "note": "x" * 2**20}
        for copies, status in ((9, 200), (10, 413)):
            document = {"mcpServers": {f"server-{number}": server for number in range(copies)}}
            answer = admin.call("POST", "/config?dry_run=true", document)
            assert answer.status_code == status, answer.content[:200]


class TestLastUse:
    def test_is_written_later_and_once_a_minute(self, agent: Agent) -> None:
        agent.get(POLL)
        assert ApiKey.objects.get(pk=agent.key.pk).last_used_at is None
        records.write_notes()
        first = ApiKey.objects.get(pk=agent.key.pk).last_used_at
        assert first is not None
        agent.get(POLL)
        records.write_notes()
        assert ApiKey.objects.get(pk=agent.key.pk).last_used_at == first


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


class TestAdminKeys:
    def test_key_made_by_rest_works_and_is_shown_once(self, agent: Agent) -> None:
        admin = make_agent(admin=True)
        made = admin.post("/keys", {"name": "bot", "rate_limit_per_minute": 9}, status=201)
        bot = Agent(ApiKey.objects.get(pk=made["id"]), made["key"])
        assert bot.get(POLL).status_code == 200
        listed = admin.read("/keys")["items"]
        assert made["key"] not in str(listed)
        assert {key["name"]: key["rate_limit_per_minute"] for key in listed}["bot"] == 9
        assert admin.call("DELETE", f"/keys/{made['id']}").status_code == 204
        assert bot.get(POLL).status_code == 401
        assert {key["id"]: key["state"] for key in admin.read("/keys")["items"]}[made["id"]] == "revoked"
