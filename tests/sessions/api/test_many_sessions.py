"""Among ten thousand sessions a call makes the same queries as alone, and none reads a whole table."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions.models import AgentSession, LoadedTool
from sessions.services import write_behind
from tests.sessions.api.calling import Agent, Conversation

MANY = 10_000


@pytest.fixture
def conversation(agent: Agent) -> Conversation:
    begun = agent.begin()
    begun.search("create issue")
    return begun


def add_sessions(agent: Agent, count: int) -> None:
    now = timezone.now()
    rows = [
        AgentSession(
            key=agent.key, policy=agent.key.policy, last_seen_at=now, expires_at=now + timedelta(days=1)
        )
        for _ in range(count)
    ]
    AgentSession.objects.bulk_create(rows, batch_size=1000)
    loaded = [LoadedTool(session=row, name="x", position=1, loaded_turn=0, used_turn=0) for row in rows]
    LoadedTool.objects.bulk_create(loaded, batch_size=1000)


def poll_unchanged(conversation: Conversation) -> None:
    path = f"{conversation.path}/tools"
    tag = conversation.agent.get(path).headers["ETag"]
    assert conversation.agent.get(path, If_None_Match=tag).status_code == 304


def search_again(conversation: Conversation) -> None:
    assert conversation.search("create issue")["outcome"] == "matched"


def load_another(conversation: Conversation) -> None:
    conversation.do("unload", names=["send_message"])
    assert conversation.search("select:send_message")["loaded"] == ["mcp__slack__send_message"]


def write_records(conversation: Conversation) -> None:
    conversation.search("create issue")
    write_behind.flush()


def queries_of(call: Callable[[Conversation], None], conversation: Conversation) -> list[str]:
    call(conversation)  # what the process remembers is in place
    with CaptureQueriesContext(
        connection,
    ) as made:
        call(conversation)
    return [query["sql"] for query in made.captured_queries]


def whole_tables_read_by(query: str) -> list[str]:
    """The parts of the database's plan that go through a table row by row."""
    if query.split(maxsplit=1)[0] not in ("SELECT", "UPDATE", "DELETE"):
        return []
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")  # so that a small table is no excuse
            cursor.execute(f"EXPLAIN {query}")
            return [line for (line,) in cursor.fetchall() if "Seq Scan on agent_sessions" in line]
        cursor.execute(f"EXPLAIN QUERY PLAN {query}")
        return [row[3] for row in cursor.fetchall() if row[3].startswith("SCAN")]


def test_calls_cost_the_same_among_ten_thousand(agent: Agent, conversation: Conversation) -> None:
    calls = (poll_unchanged, search_again, load_another, write_records)
    alone = {call.__name__: len(queries_of(call, conversation)) for call in calls}
    add_sessions(agent, MANY)
    among_many = {call.__name__: queries_of(call, conversation) for call in calls}
    assert {name: len(queries) for name, queries in among_many.items()} == alone
    every_query = {query for queries in among_many.values() for query in queries}
    assert [(query, found) for query in every_query if (found := whole_tables_read_by(query))] == []
