"""`GET /calls`: what was called through the gateway, for admins."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.harness.rows import make_call, make_key
from tests.sessions.api.calling import Agent, make_agent

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> Agent:
    return make_agent(admin=True)


def test_item_tells_what_was_recorded(admin: Agent) -> None:
    key = make_key(name="coder")
    call = make_call(
        key=key,
        outcome="upstream_failed",
        via="direct",
        error="refused",
        upstream_ms=None,
        is_cut=True,
        arguments="{}",
        result="{}",
    )
    (item,) = admin.read("/calls")["items"]
    assert item.pop("at") == call.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert item == {
        "id": call.pk,
        "key": "coder",
        "client": "claude-code",
        "revision": "2026-07-28",
        "policy": "default",
        "server": "github",
        "tool": "mcp__github__create_issue",
        "via": "direct",
        "outcome": "upstream_failed",
        "duration_ms": 240,
        "upstream_ms": None,
        "request_bytes": 312,
        "result_bytes": 1840,
        "is_cut": True,
        "error": "refused",
    }


def test_newest_come_first_and_pages_follow_each_other(admin: Agent) -> None:
    now = timezone.now()
    made = [make_call(at=now + timedelta(seconds=second // 2)).pk for second in range(7)]
    page = admin.read("/calls?limit=3")
    seen = [[item["id"] for item in page["items"]]]
    while page["next"]:
        page = admin.read(f"/calls?limit=3&cursor={page['next']}")
        seen.append([item["id"] for item in page["items"]])
    assert seen == [made[:3:-1], made[3:0:-1], made[:1]]


def test_filters(admin: Agent) -> None:
    key = make_key(name="coder")
    mine = make_call(key=key, server="time", tool="mcp__time__now", outcome="refused")
    make_call(key=make_key())
    for query in ("key=coder", f"key={key.pk}", "server=time", "tool=mcp__time__now", "outcome=refused"):
        assert [item["id"] for item in admin.read(f"/calls?{query}")["items"]] == [mine.pk], query
    for query in ("key=nobody", "server=times", "tool=now", "server=time&outcome=ok"):
        assert admin.read(f"/calls?{query}") == {"items": [], "next": None}, query


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=501",
        "limit=x",
        "outcome=good",
        "cursor=x",
        "cursor=",
        "key=%00",
        "server=a%00b",
        "tool=%00",
        f"key={'a' * 101}",
    ],
)
def test_bad_values_are_refused(admin: Agent, query: str) -> None:
    answer = admin.get(f"/calls?{query}")
    assert answer.status_code == 422
    assert answer.json()["errors"]


def test_limit_is_fifty_unless_given(admin: Agent) -> None:
    for _ in range(51):
        make_call()
    assert len(admin.read("/calls")["items"]) == 50
    assert len(admin.read("/calls?limit=500")["items"]) == 51


def test_is_for_admins() -> None:
    assert make_agent().get("/calls").status_code == 403
