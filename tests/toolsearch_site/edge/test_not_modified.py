"""Repeated 304s are served ahead of Django only while everything they depend on is unchanged."""

import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client, RequestFactory
from django.utils import timezone

from catalog.access import key_uses, rates
from catalog.access.actors import COMMAND_LINE
from catalog.domain.choices import Loading
from catalog.domain.rates import Window
from catalog.models import ApiKey, ModelSupport, Policy, Tool
from catalog.services import keys, policies, tool_settings
from sessions.api.polling import NOT_MODIFIED_BASIS
from sessions.models import AgentSession
from sessions.offers import known_models, polls
from sessions.services import write_behind
from tests.sessions.api.calling import ROOT, Agent, Conversation, fill_catalog, follow, make_agent
from toolsearch_site import wsgi
from toolsearch_site.edge import not_modified
from toolsearch_site.monitoring import metrics

pytestmark = pytest.mark.django_db


class Door:
    """The site behind the door under test, with a count of what got through to Django."""

    def __init__(self) -> None:
        self.passed = 0
        self._application = not_modified.NotModified(self._site)

    def _site(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.passed += 1
        return wsgi.site(environ, start_response)

    def is_repeated_poll(self, environ: dict[str, Any]) -> bool:
        return self._application.is_repeated_poll(environ)

    def poll(self, path: str, *, key: str, tag: str = "", **environ: str) -> tuple[int, dict[str, str]]:
        told: list[tuple[str, list[tuple[str, str]]]] = []
        sent = {"HTTP_AUTHORIZATION": f"Bearer {key}", "HTTP_IF_NONE_MATCH": tag, **environ}
        asked = RequestFactory().get(ROOT + path, **{name: value for name, value in sent.items() if value})  # type: ignore[arg-type]
        body = self._application(asked.environ, lambda status, headers, *_: told.append((status, headers)))
        b"".join(body)
        status, headers = told[0]
        return int(status.split()[0]), dict(headers)


@pytest.fixture
def agent() -> Agent:
    fill_catalog()
    return make_agent()


@pytest.fixture
def session(agent: Agent) -> Conversation:
    return agent.begin()


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Door:
    """A request gives its connection back at its end; here that would end the test's transaction."""
    monkeypatch.setattr(BaseDatabaseWrapper, "close_if_unusable_or_obsolete", lambda _: None)
    return Door()


@pytest.fixture(autouse=True)
def one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing counted for a key of another test, and no new minute in between."""
    monkeypatch.setattr(rates, "_window", Window(clock=lambda: 120.0))


def ask_until_kept(door: Door, path: str, key: str) -> str:
    """The tag of a list; its "not modified" has been given once, and Django was asked twice."""
    tag = door.poll(path, key=key)[1]["ETag"]
    assert door.poll(path, key=key, tag=tag)[0] == 304
    door.passed = 0
    return tag


class TestUnchanged:
    @pytest.mark.parametrize("query", ["", "?format=openai&hosted=true"])
    def test_session_is_answered_alike_without_django(
        self, door: Door, agent: Agent, session: Conversation, query: str
    ) -> None:
        path = f"{session.path}/tools{query}"
        tag = door.poll(path, key=agent.text)[1]["ETag"]
        by_django = door.poll(path, key=agent.text, tag=tag)
        again = door.poll(path, key=agent.text, tag=tag)
        assert door.passed == 2
        assert again[0] == by_django[0] == 304
        assert by_django[1].pop("X-Request-ID") != again[1].pop("X-Request-ID")
        assert again[1] == by_django[1]

    def test_policy_is_answered_without_django_for_each_key(self, door: Door, agent: Agent) -> None:
        other = make_agent()
        for caller in (agent, other, agent, other):
            tag = door.poll("/policies/default/tools", key=agent.text)[1]["ETag"]
            assert door.poll("/policies/default/tools", key=caller.text, tag=tag)[0] == 304
        assert door.passed == 4 + 2

    def test_costs_one_read(
        self, door: Door, agent: Agent, session: Conversation, django_assert_num_queries: Any
    ) -> None:
        tag = ask_until_kept(door, f"{session.path}/tools", agent.text)
        with django_assert_num_queries(1):
            assert door.poll(f"{session.path}/tools", key=agent.text, tag=tag)[0] == 304
        assert door.passed == 0

    def test_edit_of_what_is_not_sent_leaves_a_session_unchanged(
        self, door: Door, agent: Agent, session: Conversation
    ) -> None:
        tag = ask_until_kept(door, f"{session.path}/tools", agent.text)
        tool_settings.change_tool(tool=Tool.objects.all()[0], actor=COMMAND_LINE, keywords=["kite"])
        follow()
        assert door.poll(f"{session.path}/tools", key=agent.text, tag=tag)[0] == 304
        assert door.passed == 0

    def test_request_id_of_the_caller_is_kept(self, door: Door, agent: Agent, session: Conversation) -> None:
        tag = ask_until_kept(door, f"{session.path}/tools", agent.text)
        sent = {"HTTP_X_REQUEST_ID": "from-the-proxy-1"}
        _, headers = door.poll(f"{session.path}/tools", key=agent.text, tag=tag, **sent)
        assert headers["X-Request-ID"] == "from-the-proxy-1"

    def test_is_counted_and_its_use_noted(self, door: Door, agent: Agent, session: Conversation) -> None:
        tag = ask_until_kept(door, f"{session.path}/tools", agent.text)
        write_behind.flush()
        key_uses.forget()  # as after a minute
        long_ago = timezone.now() - timedelta(hours=1)
        AgentSession.objects.filter(pk=session.id).update(last_seen_at=long_ago)
        counter = metrics.REQUESTS.labels("poll", "GET", 304)
        before = counter._value.get()
        door.poll(f"{session.path}/tools", key=agent.text, tag=tag)
        write_behind.flush()
        key_uses.flush()
        assert ApiKey.objects.get(pk=agent.key.pk).last_used_at is not None
        assert counter._value.get() == before + 1
        assert AgentSession.objects.get(pk=session.id).last_seen_at > long_ago


class TestChanged:
    def test_loaded_tool_is_a_new_list(self, door: Door, agent: Agent, session: Conversation) -> None:
        tag = ask_until_kept(door, f"{session.path}/tools", agent.text)
        session.search("open a new issue")
        assert door.poll(f"{session.path}/tools", key=agent.text, tag=tag)[0] == 200

    def test_edit_is_a_new_list(self, door: Door, agent: Agent, session: Conversation) -> None:
        paths = (f"{session.path}/tools", "/policies/default/tools")
        tags = [ask_until_kept(door, path, agent.text) for path in paths]
        tool_settings.change_tool(
            tool=Tool.objects.get(name="read_file"), actor=COMMAND_LINE, loading=Loading.ALWAYS
        )
        follow()
        asked = [door.poll(path, key=agent.text, tag=tag)[0] for path, tag in zip(paths, tags, strict=True)]
        assert asked == [200, 200]

    def test_edit_of_the_models_row_is_a_new_list_where_the_window_counts(
        self, door: Door, agent: Agent
    ) -> None:
        policy = Policy.objects.get(slug="default")
        auto = {"mode": "auto", "threshold_unit": "context_percent"}
        policies.change_policy(policy=policy, changed=auto, actor=COMMAND_LINE)
        row = ModelSupport.objects.create(name_pattern="house-*", provider="other", context_window=10**6)
        follow()
        path = f"{agent.begin(model='house-1').path}/tools"
        tag = ask_until_kept(door, path, agent.text)
        assert (door.poll(path, key=agent.text, tag=tag)[0], door.passed) == (304, 0)
        ModelSupport.objects.filter(pk=row.pk).update(context_window=400)
        known_models.clear()  # what a second does
        assert door.poll(path, key=agent.text, tag=tag)[0] == 200

    def test_revoked_key_is_refused(self, door: Door, agent: Agent, session: Conversation) -> None:
        tag = ask_until_kept(door, f"{session.path}/tools", agent.text)
        keys.revoke_key(key=agent.key, actor=COMMAND_LINE)
        assert door.poll(f"{session.path}/tools", key=agent.text, tag=tag)[0] == 401

    def test_expired_key_is_refused(self, door: Door, agent: Agent, session: Conversation) -> None:
        tag = ask_until_kept(door, f"{session.path}/tools", agent.text)
        ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert door.poll(f"{session.path}/tools", key=agent.text, tag=tag)[0] == 401

    def test_expired_session_is_gone(self, door: Door, agent: Agent, session: Conversation) -> None:
        tag = ask_until_kept(door, f"{session.path}/tools", agent.text)
        AgentSession.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert door.poll(f"{session.path}/tools", key=agent.text, tag=tag)[0] == 404

    def test_key_with_the_same_prefix_and_another_secret_is_refused(
        self, door: Door, agent: Agent, session: Conversation
    ) -> None:
        tag = ask_until_kept(door, f"{session.path}/tools", agent.text)
        forged = agent.text[:-1] + ("a" if agent.text[-1] != "a" else "b")
        assert door.poll(f"{session.path}/tools", key=forged, tag=tag)[0] == 401

    def test_session_of_another_key_is_not_found(
        self, door: Door, agent: Agent, session: Conversation
    ) -> None:
        tag = ask_until_kept(door, f"{session.path}/tools", agent.text)
        assert door.poll(f"{session.path}/tools", key=make_agent().text, tag=tag)[0] == 404

    @pytest.mark.parametrize("error", [OperationalError, InterfaceError])
    def test_database_that_is_away_is_told(
        self,
        door: Door,
        agent: Agent,
        session: Conversation,
        monkeypatch: pytest.MonkeyPatch,
        error: type[Exception],
    ) -> None:
        tag = ask_until_kept(door, f"{session.path}/tools", agent.text)

        def fail(*_: object) -> None:
            raise error("server closed the connection unexpectedly")

        monkeypatch.setattr(polls, "read_row", fail)
        status, headers = door.poll(f"{session.path}/tools", key=agent.text, tag=tag)
        assert (status, "Retry-After" in headers) == (503, True)

    def test_limit_that_a_key_got_counts_each_poll_once(
        self, door: Door, agent: Agent, session: Conversation
    ) -> None:
        tag = ask_until_kept(door, f"{session.path}/tools", agent.text)
        ApiKey.objects.update(rate_limit_per_minute=1)
        polled = [door.poll(f"{session.path}/tools", key=agent.text, tag=tag)[0] for _ in range(2)]
        assert polled == [304, 429]

    def test_query_string_in_another_charset_is_another_poll(
        self, door: Door, agent: Agent, session: Conversation
    ) -> None:
        path, in_utf_7 = f"{session.path}/tools?format=%2BAG0-cp", {"CONTENT_TYPE": "a/b; charset=utf-7"}
        tag = door.poll(path, key=agent.text, **in_utf_7)[1]["ETag"]
        assert door.poll(path, key=agent.text, tag=tag, **in_utf_7)[0] == 304
        assert door.poll(path, key=agent.text, tag=tag)[0] == 422


class TestNotKept:
    def test_format_that_follows_the_model(self, door: Door, agent: Agent) -> None:
        session = agent.begin(model="claude-sonnet-4-5")
        ask_until_kept(door, f"{session.path}/tools?format=%61uto", agent.text)
        tag = door.poll(f"{session.path}/tools?format=%61uto", key=agent.text)[1]["ETag"]
        assert door.poll(f"{session.path}/tools?format=%61uto", key=agent.text, tag=tag)[0] == 304
        assert door.passed == 2

    def test_key_with_a_limit(self, door: Door) -> None:
        fill_catalog()
        limited = make_agent(rate_limit_per_minute=3)
        tag = door.poll("/policies/default/tools", key=limited.text)[1]["ETag"]
        polled = [door.poll("/policies/default/tools", key=limited.text, tag=tag)[0] for _ in range(3)]
        assert polled == [304, 304, 429]

    def test_shelf_has_an_end(
        self, door: Door, agent: Agent, session: Conversation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(not_modified, "KEPT_ANSWERS", 1)
        path, other = f"{session.path}/tools", "/policies/default/tools"
        tag = ask_until_kept(door, path, agent.text)
        ask_until_kept(door, other, agent.text)
        assert door.poll(path, key=agent.text, tag=tag)[0] == 304
        assert door.passed == 1

    def test_shelf_has_one_place_for_a_poller(
        self, door: Door, agent: Agent, session: Conversation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Or every edit would leave an answer behind for each of them, which nobody asks for again."""
        monkeypatch.setattr(not_modified, "KEPT_ANSWERS", 2)
        path, other = f"{session.path}/tools", "/policies/default/tools"
        known = ask_until_kept(door, other, agent.text)
        for name in ("create_issue", "list_issues", "read_file"):
            session.search(f"select:{name}")
            ask_until_kept(door, path, agent.text)
        assert door.poll(other, key=agent.text, tag=known)[0] == 304
        assert door.passed == 0

    @pytest.mark.parametrize("where", ["tag", "query", "type"])
    def test_poll_of_any_length_that_its_caller_likes(
        self, door: Door, agent: Agent, session: Conversation, where: str
    ) -> None:
        path, long = f"{session.path}/tools", "x" * not_modified.LONGEST_KEPT_CHARS
        tag = ask_until_kept(door, path, agent.text)
        sent = {
            "tag": {"tag": f'{tag}, "{long}"'},
            "query": {"tag": tag, "QUERY_STRING": f"other={long}"},
            "type": {"tag": tag, "CONTENT_TYPE": f"text/{long}"},
        }
        assert [door.poll(path, key=agent.text, **sent[where])[0] for _ in range(2)] == [304, 304]
        assert door.passed == 2


def test_shelf_is_shared_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread makes room while another drops what no longer holds."""
    monkeypatch.setattr(not_modified, "KEPT_ANSWERS", 3)

    def site(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        environ[NOT_MODIFIED_BASIS] = "as it was"
        start_response("304 Not Modified", [])
        return ()

    door = not_modified.NotModified(site)

    def poll_often(thread: int) -> None:
        for number in range(5_000):
            sent = {"REQUEST_METHOD": "GET", "HTTP_IF_NONE_MATCH": "x", "PATH_INFO": f"{thread} {number}"}
            door(sent, lambda *_: None)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(poll_often, range(4)))
    finally:
        sys.setswitchinterval(usual)


class TestForeignHost:
    def test_is_refused_before_and_after_an_answer_was_kept(
        self, door: Door, agent: Agent, session: Conversation
    ) -> None:
        path = f"{session.path}/tools"
        tag = ask_until_kept(door, path, agent.text)
        status, headers = door.poll(path, key=agent.text, tag=tag, HTTP_HOST="evil.example")
        assert (status, headers["Content-Type"]) == (400, "application/problem+json")
        assert door.poll(path, key=agent.text, tag=tag)[0] == 304

    @pytest.mark.parametrize("path", ["/api/v1/health", "/healthz"])
    def test_may_ask_whether_all_is_well(self, client: Client, path: str) -> None:
        assert client.get(path, headers={"Host": "10.0.0.7"}).status_code == 200


def test_only_the_poll_that_was_answered_so_before_is_a_repeated_one(
    door: Door, agent: Agent, session: Conversation
) -> None:
    path = f"{session.path}/tools"
    tag = ask_until_kept(door, path, agent.text)
    asked = {"HTTP_AUTHORIZATION": f"Bearer {agent.text}", "HTTP_IF_NONE_MATCH": tag}

    def is_repeated(**changed: str) -> bool:
        request = RequestFactory().get(ROOT + path, **{**asked, **changed})  # type: ignore[arg-type]
        return door.is_repeated_poll(request.environ)

    assert is_repeated()
    assert not is_repeated(HTTP_IF_NONE_MATCH='"another"')
    assert not is_repeated(HTTP_AUTHORIZATION="Bearer another")
    assert not is_repeated(QUERY_STRING="format=stub")
