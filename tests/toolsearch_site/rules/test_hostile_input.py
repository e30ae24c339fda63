"""Input that is too large, too deep or too clever is refused in time, wherever it comes in."""

import io
import time
from typing import Any

import kombu.serialization
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from kombu.exceptions import ContentDisallowed

from catalog.access.roles import Role
from catalog.domain.errors import InvalidInput
from catalog.domain.facts import ToolFacts
from catalog.domain.globs import compile_globs
from catalog.domain.json_text import read_json
from catalog.domain.limits import GLOB_CHARS
from catalog.models import Server
from tests.harness.pages import HTMX, signed_in, visible_text
from tests.harness.rows import make_server, make_tool
from tests.sessions.api.calling import make_agent
from toolsearch_site.celery import app

DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000
LONG_NUMBER = '{"threshold": ' + "9" * 100_000 + "}"
MIB = 1024 * 1024


class TestSize:
    @pytest.mark.django_db
    def test_file_for_a_form_that_takes_none_is_refused_unread(self, client: Client) -> None:
        """Anybody can send to the sign-in page; Django would put the file on the disk first."""
        answer = client.post("/sign-in/", {"x": SimpleUploadedFile("x", b"0" * (MIB + 1))})
        assert answer.status_code == 413
        assert "at most 1 MiB" in visible_text(answer)

    @pytest.mark.django_db
    def test_body_is_not_touched_to_find_that_out(self, client: Client) -> None:
        class Untouched(io.BytesIO):
            def read(self, *_: Any) -> bytes:
                raise AssertionError("the body was read")

        sent: dict[str, Any] = {"wsgi.input": Untouched(), "CONTENT_LENGTH": str(10**12)}
        answer = client.generic("POST", "/sign-in/", content_type="multipart/form-data; boundary=x", **sent)
        assert answer.status_code == 413

    @pytest.mark.django_db
    @pytest.mark.parametrize("length", ["-1", "1e9", "0x10"])
    def test_length_that_is_no_number_is_refused(self, client: Client, length: str) -> None:
        assert client.generic("POST", "/sign-in/", CONTENT_LENGTH=length).status_code in (400, 413)

    @pytest.mark.django_db
    def test_body_without_a_length_is_told_to_give_one(self, client: Client) -> None:
        """What comes in chunks has no length, and Django would read none of it."""
        chunked: dict[str, Any] = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
        page = client.generic("POST", "/sign-in/", b"x", "application/x-www-form-urlencoded", **chunked)
        assert page.status_code == 411
        assert "must say how long it is" in visible_text(page)
        key = make_agent()
        headers = {"Authorization": f"Bearer {key.text}"}
        answer = client.generic(
            "POST", "/api/v1/sessions", b"{}", "application/json", headers=headers, **chunked
        )
        assert (answer.status_code, answer["Content-Type"]) == (411, "application/problem+json")
        assert "Content-Length" in answer.json()["detail"]

    @pytest.mark.django_db
    def test_pasted_config_of_a_mebibyte_is_refused(self) -> None:
        answer = signed_in(Role.ADMIN).post("/add-server/paste/", {"config": "x" * (MIB + 1)})
        assert answer.status_code == 413

    @pytest.mark.django_db
    def test_form_with_thousands_of_fields_is_refused(self) -> None:
        client = signed_in(Role.ADMIN)
        assert client.post("/add-server/paste/", {f"field{n}": "" for n in range(2_000)}).status_code == 400


class TestJson:
    @pytest.mark.parametrize("text", [DEEP, "[" * 100_000, LONG_NUMBER, '"' + "\\u0000" * 3])
    def test_reader_of_files_refuses_it_in_words(self, text: str) -> None:
        with pytest.raises(InvalidInput, match="invalid JSON"):
            read_json(text)

    @pytest.mark.django_db
    @pytest.mark.parametrize("text", [DEEP, LONG_NUMBER, '{"x": "\\u0000"}', '{"x": "\\ud800"}', "NaN", "[]"])
    def test_api_refuses_it_as_invalid(self, text: str) -> None:
        agent = make_agent(admin=True)
        for path in ("/sessions", "/servers", "/config", "/policies"):
            answer = agent.client.post(
                f"/api/v1{path}",
                text,
                content_type="application/json",
                headers={"Authorization": f"Bearer {agent.text}"},
            )
            assert answer.status_code == 422, path

    @pytest.mark.django_db
    @pytest.mark.parametrize("text", [DEEP, LONG_NUMBER, "[" * 100_000])
    def test_console_tells_it_beside_the_form(self, text: str) -> None:
        answer = signed_in(Role.ADMIN).post("/add-server/paste/", {"config": text, "policy": "default"})
        assert answer.status_code in (200, 422)
        assert not Server.objects.exists()

    @pytest.mark.django_db
    def test_schema_nested_without_end_does_not_stop_a_page(self) -> None:
        schema: dict[str, Any] = {"type": "string"}
        for _ in range(200):
            schema = {"type": "object", "properties": {"a": schema}}
        tool = make_tool(input_schema=schema)
        assert signed_in(Role.VIEWER).get(tool.get_absolute_url()).status_code == 200


class TestPatterns:
    def test_no_glob_takes_long(self) -> None:
        """Every star could begin anywhere: tried one by one, that would take longer than the universe."""
        glob = ("*a" * GLOB_CHARS)[: GLOB_CHARS - 1] + "b"
        facts = ToolFacts(name="a" * 64, tool="a" * 255, server="a" * 100, chars=1)
        started = time.thread_time()
        assert not compile_globs((glob,))(facts)
        assert time.thread_time() - started < 1

    @pytest.mark.django_db
    def test_list_of_globs_that_takes_long_is_refused_wherever_one_is_taken(self) -> None:
        """A thousand such globs took twenty seconds of a thread for ten thousand tools."""
        globs = [f"*{'*'.join('creatingissues')}*{number}" for number in range(1_000)]
        agent, admin = make_agent(), make_agent(admin=True)
        session = agent.begin()
        for answer in (
            agent.call("POST", "/sessions", {"visible": globs}),
            agent.call("PATCH", session.path, {"visible": globs}),
            agent.call("POST", f"{session.path}/turns", {"visible": globs}),
            *(
                admin.call("PATCH", "/policies/default", {field: globs})
                for field in ("visible", "never_defer", "always_defer")
            ),
        ):
            assert answer.status_code == 422
            assert "patterns with wildcards inside" in str(answer.json()["errors"])

    @pytest.mark.django_db
    @pytest.mark.parametrize(
        "pattern", ["(?:a{1000}){1000}", "(?:(?:(?:a{99}){99}){99}){99}", "(?:" * 33 + "a" + ")+" * 33]
    )
    def test_pattern_that_would_take_gigabytes_is_refused(self, pattern: str) -> None:
        make_tool()
        agent = make_agent()
        answer = agent.call("POST", f"{agent.begin().path}/search", {"pattern": pattern})
        assert answer.status_code == 422
        assert "repeats too much" in str(answer.json()["errors"])

    @pytest.mark.django_db
    @pytest.mark.parametrize(
        "pattern", ["(a+)+$", "(a|aa)+$", "(.*a){25}", "(?:a?){50}a{50}", "^(([a-z])+.)+[A-Z]$"]
    )
    def test_no_regular_expression_of_an_agent_takes_long(self, pattern: str) -> None:
        server = make_server()
        make_tool(server=server, name="x", description="a" * 5_000 + "!")
        agent = make_agent()
        session = agent.begin()
        started = time.thread_time()
        answer = agent.call("POST", f"{session.path}/search", {"pattern": pattern})
        assert answer.status_code in (200, 422)
        assert time.thread_time() - started < 3


class TestHeaders:
    NAME = 'x"\r\nSet-Cookie: evil=1; "; filename=evil.exe \u202e <b>'

    @pytest.mark.django_db
    def test_name_of_a_server_or_tool_writes_no_header(self) -> None:
        server = make_server(
            name=self.NAME.replace("\r\n", " ")
        )  # a line's end is no part of a server's name
        tool = make_tool(server=server, name=self.NAME, description=self.NAME)
        client = signed_in(Role.ADMIN)
        changes: list[tuple[str, dict[str, str]]] = [
            (f"{server.get_absolute_url()}enabled/", {"enabled": "no"}),
            (f"{server.get_absolute_url()}loading/", {"defer": "defer"}),
            (f"{tool.get_absolute_url()}loading/", {"loading": "always"}),
        ]
        answers = [client.post(path, values, headers=sent) for path, values in changes for sent in ({}, HTMX)]
        answers += [client.get(path) for path in ("/tools.csv", "/tools.json", tool.get_absolute_url())]
        for answer in answers:
            assert answer.status_code < 400
            assert "evil" not in answer.cookies
            for name, value in answer.items():
                assert not set("\r\n") & set(value), name
            assert "evil.exe" not in answer.headers.get("Content-Disposition", "")


def test_worker_takes_no_message_that_could_hold_code() -> None:
    """A pickle runs what it holds when it is opened: with the broker's password one would own the worker."""
    messages: Any = kombu.serialization  # has no types
    accepted = messages.prepare_accept_content(app.conf.accept_content)
    content_type, encoding, body = messages.dumps({"x": 1}, serializer="json")
    assert messages.loads(body, content_type, encoding, accept=accepted) == {"x": 1}
    messages.registry.enable("pickle")
    try:
        content_type, encoding, body = messages.dumps({"x": 1}, serializer="pickle")
        with pytest.raises(ContentDisallowed):
            messages.loads(body, content_type, encoding, accept=accepted)
    finally:
        messages.registry.disable("pickle")
