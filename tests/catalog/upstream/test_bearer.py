"""The token of a sign-in is sent to the server's own address, as it is, and shown to nobody."""

import asyncio
from collections.abc import Iterator

import httpx2
import pytest

from catalog import upstream
from catalog.domain.choices import Transport
from catalog.domain.connection import Connection, FailureCode, Limits, UpstreamFailure
from catalog.domain.marking.mark import MASK
from catalog.domain.oauth import Challenge
from catalog.domain.upstream_calls import LeaseHolder, UpstreamError
from catalog.upstream import lease
from catalog.upstream.guard import resolve_host
from catalog.upstream.http import Bearer, HttpLink
from catalog.upstream.progress import LONGEST_TEXT
from tests.catalog.upstream.conftest import AT_HOME
from tests.catalog.upstream.leasing import Caller, open_pool, upstream_of
from tests.catalog.upstream.web import Web, run_web
from tests.harness.protected_server import ProtectedServer, lend, listen, run_protected_server

TOKEN = "canary-0123456789"


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with run_web() as running:
        yield running


@pytest.fixture(scope="session")
def running() -> Iterator[ProtectedServer]:
    with run_protected_server() as made:
        yield made


@pytest.fixture
def place(running: ProtectedServer) -> Iterator[ProtectedServer]:
    """It takes this token alone."""
    with lend(running):
        running.find_scopes = lambda token: frozenset({"read"}) if token == TOKEN else None
        yield running


def list_tools(connection: Connection, token: str) -> int:
    return len(upstream.list_tools(connection, limits=Limits(), rules=AT_HOME, token=token).definitions)


def fail(connection: Connection, token: str = TOKEN) -> UpstreamFailure:
    with pytest.raises(UpstreamFailure) as failure:
        list_tools(connection, token)
    return failure.value


def test_it_takes_the_place_of_the_settings_own(place: ProtectedServer) -> None:
    assert list_tools(place.connection(authorization="Bearer pasted"), TOKEN) > 0
    assert set(place.tokens) == {TOKEN}


def test_without_one_the_settings_own_is_sent(place: ProtectedServer) -> None:
    assert list_tools(place.connection(authorization=f"Bearer {TOKEN}"), "") > 0


def test_it_is_no_reference_to_a_variable(place: ProtectedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threat 14: else a hostile provider reads this machine's variables."""
    monkeypatch.setenv("CLOUD_KEY", TOKEN)
    fail(place.connection(), "${CLOUD_KEY}")
    assert set(place.tokens) == {"${CLOUD_KEY}"}


class TestRefusal:
    def test_of_a_token_says_what_is_asked_for(self, place: ProtectedServer) -> None:
        failure = fail(place.connection(), "another")
        assert failure.code is FailureCode.SIGN_IN_NEEDED
        assert failure.challenge == Challenge(place.metadata_url, ("read",), "invalid_token")

    def test_of_a_pasted_token_asks_for_a_valid_one(self, place: ProtectedServer) -> None:
        failure = fail(place.connection(Authorization="Bearer pasted"), "")
        assert (failure.code, failure.challenge) == (FailureCode.UNAUTHORIZED, None)

    def test_for_lack_of_a_right_names_it(self, place: ProtectedServer) -> None:
        place.answers["/mcp"] = 403, {"www-authenticate": 'Bearer error="insufficient_scope", scope="a b"'}
        failure = fail(place.connection())
        assert failure.code is FailureCode.SCOPE_NEEDED
        assert "(a b)" in failure.message
        assert failure.challenge == Challenge(scopes=("a", "b"), error="insufficient_scope")

    def test_for_another_reason_is_not_mended_by_a_sign_in(self, place: ProtectedServer) -> None:
        place.answers["/mcp"] = 403, {"www-authenticate": "Bearer"}
        assert fail(place.connection()).code is FailureCode.UNAUTHORIZED


class TestOneConnection:
    """Calls share it, and some began with the token of before."""

    @pytest.mark.anyio
    @pytest.mark.parametrize("order", [(TOKEN, "of-before"), ("of-before", TOKEN)])
    async def test_each_call_is_sent_with_its_own(
        self, place: ProtectedServer, order: tuple[str, str]
    ) -> None:
        place.find_scopes = lambda token: frozenset({"read"})
        async with open_pool() as (pool, _):
            callers = [Caller(pool, upstream_of(place.connection(), token=token)) for token in order]
            await callers[0].call("echo")  # the connection stands
            place.tokens.clear()
            await asyncio.gather(*(caller.call("echo") for caller in callers))
            assert len(pool.snapshot()) == 1
        assert sorted(place.tokens[:2]) == sorted(order)

    @pytest.mark.anyio
    async def test_refused_one_at_the_greeting_is_one_calls_alone(self, place: ProtectedServer) -> None:
        async with open_pool() as (pool, _):
            tokens = ("of-before", TOKEN)
            callers = [Caller(pool, upstream_of(place.connection(), token=token)) for token in tokens]
            refused, told = await asyncio.gather(
                *(caller.call("echo") for caller in callers), return_exceptions=True
            )
        assert isinstance(refused, UpstreamFailure)
        assert refused.code is FailureCode.SIGN_IN_NEEDED
        assert not isinstance(told, BaseException)


class TestOtherOrigins:
    """Threat 7."""

    def test_get_no_token_by_a_redirect(self, place: ProtectedServer) -> None:
        with listen() as listener, ProtectedServer(listener).running() as other:
            place.answers["/mcp"] = 307, {"location": other.url}
            assert fail(place.connection()).code is FailureCode.REDIRECTED
            assert other.paths == []

    @pytest.mark.parametrize(
        ("url", "is_sent"),
        [
            ("https://mcp.test/mcp", True),
            ("https://mcp.test:443/other?x", True),
            ("https://mcp.test:8443/mcp", False),
            ("http://mcp.test/mcp", False),
            ("https://evil.test/mcp", False),
            ("https://mcp.test.evil.test/mcp", False),
        ],
    )
    def test_get_no_token_whoever_asks(self, url: str, is_sent: bool) -> None:
        def hear(request: httpx2.Request) -> httpx2.Response:
            heard.append(request.headers.get("authorization"))
            return httpx2.Response(200)

        async def ask() -> None:
            link = HttpLink(
                Connection(Transport.HTTP, url="https://mcp.test/mcp"),
                rules=AT_HOME.addresses,
                limits=Limits(),
                resolver=resolve_host,
                bearer=Bearer(TOKEN),
            )
            async with httpx2.AsyncClient(
                transport=httpx2.MockTransport(hear), auth=link._make_client().auth
            ) as client:
                await client.get(url)

        heard: list[str | None] = []
        asyncio.run(ask())
        assert heard == [f"Bearer {TOKEN}" if is_sent else None]


class TestSecrecy:
    """Threat 9."""

    def test_of_a_token_that_an_error_page_shows(self, web: Web) -> None:
        failure = fail(Connection(Transport.HTTP, url=f"http://127.0.0.1:{web.port}/leaky"))
        assert TOKEN not in f"{failure.message}{failure.stderr_tail}"

    def test_of_a_token_that_the_server_lists(self, place: ProtectedServer) -> None:
        place.mcp.instructions = f"Your token is {TOKEN}."
        listing = upstream.list_tools(place.connection(), limits=Limits(), rules=AT_HOME, token=TOKEN)
        assert "Your token is" in listing.instructions
        assert TOKEN not in str(listing)

    @pytest.mark.anyio
    async def test_of_a_token_in_a_servers_error_before_and_after_its_renewal(
        self, place: ProtectedServer
    ) -> None:
        place.find_scopes = lambda token: frozenset({"read"})
        async with open_pool() as (pool, _):
            for token in (TOKEN, "renewed-0123456789"):
                upstream = upstream_of(place.connection(), token=token)
                for told in (TOKEN, token):
                    with pytest.raises(UpstreamError) as error:
                        await pool.request(
                            upstream, LeaseHolder(1), "tools/call", {"name": told}, timeout_seconds=9
                        )
                    assert "Unknown tool" in error.value.message
                    assert told not in f"{error.value.message}{error.value.data}"

    @pytest.mark.anyio
    async def test_of_a_token_that_a_server_answers_with(self, place: ProtectedServer) -> None:
        place.find_scopes = lambda token: frozenset({"read"})
        renewed = "renewed-0123456789"
        async with open_pool() as (pool, _):
            for token, told in ((TOKEN, TOKEN), (renewed, renewed), (renewed, TOKEN)):
                upstream, words = upstream_of(place.connection(), token=token), f"a {told} b"
                for method, params in (
                    ("tools/call", {"name": "echo", "arguments": {"text": words}}),
                    ("tools/call", {"name": "headers", "arguments": {}, "_meta": {told: words}}),
                    ("resources/read", {"uri": f"note://{told}"}),
                    ("prompts/get", {"name": "greet", "arguments": {"name": words}}),
                ):
                    result = await pool.request(upstream, LeaseHolder(1), method, params, timeout_seconds=9)
                    assert MASK in str(result)
                    assert told not in str(result)

    @pytest.mark.anyio
    @pytest.mark.parametrize("before", ["", "x" * (LONGEST_TEXT - 9)], ids=["short", "cut"])
    async def test_of_a_token_that_progress_tells(self, place: ProtectedServer, before: str) -> None:
        """Also of the beginning of one, where a long text is cut."""

        async def note(done: float, total: float | None, text: str | None) -> None:
            told.append(text or "")

        told: list[str] = []
        async with open_pool() as (pool, _):
            caller = Caller(pool, upstream_of(place.connection(), token=TOKEN))
            await caller.call("progress", on_progress=note, words=f"{before}{TOKEN}")
        assert told[-1].startswith(f"{before}{MASK}")
        assert len(told[-1]) <= LONGEST_TEXT
        assert TOKEN[:4] not in str(told)

    @pytest.mark.anyio
    async def test_costs_a_server_without_a_sign_in_nothing(
        self, place: ProtectedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> object:
            raise AssertionError("nothing is looked for")

        monkeypatch.setattr(lease, "mask_within", refuse)
        place.find_scopes = lambda token: frozenset({"read"})
        async with open_pool() as (pool, _):
            caller = Caller(pool, upstream_of(place.connection(Authorization=f"Bearer {TOKEN}")))
            assert await caller.text("echo", text=TOKEN) == TOKEN
