"""One id names a request in its answer, in every log record, and in the tasks it wakes."""

import json
import logging
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from celery.app.task import Context
from django.test import Client

from toolsearch_site import celery as wiring
from toolsearch_site.edge.request_ids import request_id
from toolsearch_site.logs import JsonFormatter, OneLineFormatter, logging_settings


@pytest.fixture(autouse=True)
def no_id() -> Any:
    token = request_id.set("")
    yield
    request_id.reset(token)


def record(message: str, **more: Any) -> logging.LogRecord:
    return logging.LogRecord("catalog", logging.INFO, __file__, 1, message, (), more.get("exc_info"))


class TestAnswer:
    def test_has_an_id_of_its_own(self, client: Client) -> None:
        first, second = (client.get("/api/v1/nothing")["X-Request-ID"] for _ in range(2))
        assert len(first) == 32
        assert first != second

    def test_keeps_the_id_a_proxy_gave(self, client: Client) -> None:
        response = client.get("/api/v1/nothing", headers={"X-Request-ID": "proxy-0001"})
        assert response["X-Request-ID"] == "proxy-0001"

    @pytest.mark.parametrize("given", ["short", "x" * 65, "two words", "forged\\n12:00 ERROR"])
    def test_refuses_an_id_that_does_not_belong_in_a_log(self, client: Client, given: str) -> None:
        assert client.get("/api/v1/nothing", headers={"X-Request-ID": given})["X-Request-ID"] != given

    def test_is_forgotten_with_the_request(self, client: Client) -> None:
        client.get("/api/v1/nothing", headers={"X-Request-ID": "proxy-0001"})
        assert request_id.get() == ""


class TestLogs:
    def test_json_is_one_line_that_can_be_read_back(self) -> None:
        request_id.set("proxy-0001")
        try:
            raise ValueError("bad\n12:00 ERROR forged")
        except ValueError:
            written = JsonFormatter(node="web-1").format(record("tool a\nb\x1b[31m", exc_info=sys.exc_info()))
        assert len(written.splitlines()) == 1
        read = json.loads(written)
        assert read["message"] == "tool a\nb\x1b[31m"
        assert read["request_id"] == "proxy-0001"
        assert read["node"] == "web-1"
        assert "ValueError" in read["exception"]

    def test_line_ends_in_the_id(self) -> None:
        formatter = OneLineFormatter("{levelname} {message}", style="{")
        assert formatter.format(record("hello")) == "INFO hello"
        request_id.set("proxy-0001")
        assert formatter.format(record("hello")) == "INFO hello [proxy-0001]"

    def test_pool_does_not_log_every_connection(self) -> None:
        assert logging_settings(debug=False)["loggers"]["psycopg.pool"] == {"level": "WARNING"}


class TestTasks:
    def test_message_carries_the_id_of_the_request(self) -> None:
        request_id.set("proxy-0001")
        headers: dict[str, Any] = {}
        wiring.send_request_id(headers=headers)
        assert headers == {wiring.REQUEST_ID_HEADER: "proxy-0001"}

    def test_task_runs_under_the_id_it_was_sent(self) -> None:
        sent = SimpleNamespace(request=Context({wiring.REQUEST_ID_HEADER: "proxy-0001"}))
        wiring.take_request_id(task=sent, task_id="own-id")
        assert request_id.get() == "proxy-0001"

    def test_task_that_no_request_woke_is_known_by_its_own_id(self) -> None:
        wiring.take_request_id(task=SimpleNamespace(request=Context({})), task_id="own-id")
        assert request_id.get() == "own-id"
