"""Lists what a server offers: connects, reads every page, disconnects, and validates the result."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import anyio
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp_types import INVALID_REQUEST, METHOD_NOT_FOUND, ErrorData, Implementation

from catalog.domain.choices import Transport
from catalog.domain.connection import (
    Connection,
    FailureCode,
    Features,
    Limits,
    Rejected,
    Rules,
    ServerListing,
    UpstreamFailure,
    resolve,
)
from catalog.upstream.definitions import mask_and_judge
from catalog.upstream.failures import Link, explain_failure, explain_timeout
from catalog.upstream.features import Listed, judge_features
from catalog.upstream.guard import Resolver, resolve_host
from catalog.upstream.http import Bearer, HttpLink
from catalog.upstream.launch import prepare_launch
from catalog.upstream.masking import present, secrets_in_texts, secrets_when_resolved
from catalog.upstream.pages import METHODS, AskPage, PageSieve, read_pages
from catalog.upstream.stdio import StdioLink

OURSELVES = Implementation(name="toolsearch", version="1")
LONGEST_MESSAGE = 500
LONGEST_INSTRUCTIONS = 20_000
# Of resources and prompts: where the connection ended before they were listed, and of any failure.
LOST = UpstreamFailure(FailureCode.DISCONNECTED, "The connection ended")
UNREAD = "could not be listed, and what was listed before stays"


@dataclass(frozen=True, slots=True)
class _Heard:
    """A server's tools, and what else it offers or why that could not be listed."""

    tools: list[object]
    introduction: ServerListing
    features: Listed | UpstreamFailure | None


def list_tools(
    connection: Connection,
    *,
    limits: Limits,
    rules: Rules,
    environment: Mapping[str, str] | None = None,
    resolver: Resolver = resolve_host,
    token: str = "",
) -> ServerListing:
    """Ask a server for all its tools, and for what else it offers, without which the listing still succeeds.

    Blocks for at most the limits' seconds and a few to clean up.

    `token` is that of a sign-in to the server; it takes the place of an Authorization header.
    `${VAR}` references are filled in from `environment`, by default this process's own. Raises
    UpstreamFailure for every kind of failure. Nothing the server started is left running, and no secret value
    of the connection is in the failure or in the listing.
    """
    environment = os.environ if environment is None else environment
    resolved = resolve(connection, environment, rules.references)
    bearer = Bearer(token)
    connect = partial(make_link, resolved, limits, rules, environment, resolver, bearer=bearer)
    outcome, stderr = asyncio.run(_ask(resolved.transport, connect, limits))
    own = (token,) if token else ()
    tidy = partial(present, secrets=(*own, *secrets_when_resolved(connection, resolved, environment)))
    tail = tidy(stderr).encode()[-limits.stderr_tail_bytes :].decode(errors="ignore")
    if isinstance(outcome, UpstreamFailure):
        raise outcome.reworded(tidy(outcome.message)[:LONGEST_MESSAGE], stderr_tail=tail)
    secrets = (*own, *secrets_in_texts(resolved))
    definitions, rejected, masked = mask_and_judge(outcome.tools, limits, secrets=secrets)
    features, left_out = _judge_features(outcome.features, limits, secrets)
    return replace(
        _tidy_introduction(outcome.introduction, secrets),
        definitions=definitions,
        rejected=tuple(one._replace(why=tidy(one.why)[:LONGEST_MESSAGE]) for one in (*rejected, *left_out)),
        stderr_tail=tail,
        masked=masked,
        features=features,
    )


def _judge_features(
    listed: Listed | UpstreamFailure | None, limits: Limits, secrets: Sequence[str]
) -> tuple[Features | None, tuple[Rejected, ...]]:
    if isinstance(listed, UpstreamFailure):
        return None, (Rejected("resources and prompts", f"{UNREAD}: {listed.message}"),)
    return judge_features(listed, limits, secrets=secrets) if listed else (None, ())


def _tidy_introduction(introduction: ServerListing, secrets: Sequence[str]) -> ServerListing:
    tidy = partial(present, secrets=secrets)
    return replace(
        introduction,
        server_name=tidy(introduction.server_name),
        server_title=tidy(introduction.server_title),
        server_version=tidy(introduction.server_version),
        instructions=tidy(introduction.instructions)[:LONGEST_INSTRUCTIONS],
    )


def make_link(
    connection: Connection,
    limits: Limits,
    rules: Rules,
    environment: Mapping[str, str],
    resolver: Resolver,
    *,
    bearer: Bearer,
) -> StdioLink | HttpLink:
    """A connection's way to its server, not used yet. Raises UpstreamFailure where the rules forbid it."""
    if connection.transport is Transport.STDIO:
        return StdioLink(prepare_launch(connection, rules.stdio, environment), limits)
    if connection.transport is Transport.SNAPSHOT:
        raise UpstreamFailure(FailureCode.INVALID_ADDRESS, "A snapshot has no server to connect to")
    return HttpLink(connection, rules=rules.addresses, limits=limits, resolver=resolver, bearer=bearer)


async def _ask(
    transport: Transport, connect: Callable[[], Link], limits: Limits
) -> tuple[_Heard | UpstreamFailure, str]:
    """One conversation, or two where a command exits on the first request of the newest protocol.

    SSE belongs to the first protocol, so that request is not sent there.
    """
    started = anyio.current_time()
    try:
        link = connect()
        ends_at = started + limits.total_timeout_seconds
        mode = "legacy" if transport is Transport.SSE else "auto"
        outcome = await _converse(link, limits, mode, ends_at)
        passed_seconds = anyio.current_time() - started
        left_seconds = min(limits.connect_timeout_seconds, limits.total_timeout_seconds) - passed_seconds
        if isinstance(outcome, UpstreamFailure) and outcome.code is FailureCode.EXITED and left_seconds > 0:
            link = connect()
            hurried = replace(limits, connect_timeout_seconds=left_seconds)
            outcome = await _converse(link, hurried, "legacy", ends_at)
    except UpstreamFailure as failure:
        return failure, ""
    return outcome, link.stderr_tail


async def _converse(link: Link, limits: Limits, mode: str, ends_at: float) -> _Heard | UpstreamFailure:
    """`ends_at` is when the whole listing has to be over, whatever is left of the other limits."""
    sieve = PageSieve(limits)
    heard: _Heard | None = None
    failure: UpstreamFailure | None = None
    timeout_seconds, is_listing = _limit(limits.connect_timeout_seconds, ends_at), False
    with anyio.CancelScope(deadline=anyio.current_time() + timeout_seconds) as scope:
        try:
            client = Client(sieve.strain(link.connect()), mode=mode, cache=None, client_info=OURSELVES)
            async with client:
                timeout_seconds, is_listing = _limit(limits.list_timeout_seconds, ends_at), True
                list_ends_at = scope.deadline = anyio.current_time() + timeout_seconds
                _declare_answers(client)
                tools = await _read_tools(client, sieve, limits)
                heard = _Heard(tools, _read_introduction(client), LOST)
                scope.deadline = list_ends_at + limits.close_timeout_seconds
                features = await _read_features(client, sieve, limits, link, ends_at=list_ends_at)
                heard = replace(heard, features=features)
                scope.deadline = anyio.current_time() + limits.close_timeout_seconds
        except Exception as error:
            failure = sieve.failure or explain_failure(error, link, is_listing=is_listing)
    if heard:
        return heard  # and whatever happened on parting does not matter
    return failure or sieve.failure or explain_timeout(link, is_listing=is_listing, seconds=timeout_seconds)


def _limit(seconds: float, ends_at: float) -> float:
    return max(0.0, min(seconds, ends_at - anyio.current_time()))


def _declare_answers(client: Client) -> None:
    """Servers list by capability: those of the newest protocol ask by `input_required` results, which pass
    through the gateway, so that tools of theirs that ask can work. Of older ones such tools could not.
    """
    session = client.session
    if session.discover_result is not None:
        # Declared by having one, whatever it does.
        session._elicitation_callback = _refuse_question  # noqa: SLF001
        session._sampling_callback = _refuse_question  # noqa: SLF001
        session._list_roots_callback = _refuse_question  # noqa: SLF001
        session.adopt(session.discover_result)


async def _refuse_question(context: ClientRequestContext, params: object = None) -> ErrorData:
    return ErrorData(code=INVALID_REQUEST, message="A listing answers no questions")


async def _read_tools(client: Client, sieve: PageSieve, limits: Limits) -> list[object]:
    try:
        found = await read_pages(client.list_tools, sieve, limits, name="tools", most=limits.max_tools)
    except MCPError as error:
        if error.code == METHOD_NOT_FOUND and client.server_capabilities.tools is None:
            return []
        raise
    if len(found) > limits.max_tools:
        raise UpstreamFailure(
            FailureCode.TOO_MANY_TOOLS, f"The server lists more than {limits.max_tools} tools"
        )
    return found


async def _read_features(
    client: Client, sieve: PageSieve, limits: Limits, link: Link, *, ends_at: float
) -> Listed | UpstreamFailure | None:
    """What the server says that it has beside tools, or why that could not be listed."""
    has = client.server_capabilities
    asked: dict[str, AskPage] = {}
    if has.resources:
        asked |= {"resources": client.list_resources, "resourceTemplates": client.list_resource_templates}
    if has.prompts:
        asked["prompts"] = client.list_prompts
    if not limits.max_features:
        return None
    lists: dict[str, list[object]] = {}
    with anyio.CancelScope(deadline=ends_at):
        try:
            for name, ask in asked.items():
                lists[name] = await _read_list(ask, sieve, limits, name)
        except Exception as error:
            return sieve.failure or explain_failure(error, link, is_listing=True)
        return Listed(lists, completes=has.completions is not None)
    unread = ", ".join(METHODS[name] for name in asked if name not in lists)
    return UpstreamFailure(FailureCode.LIST_TIMEOUT, f"The server did not answer {unread} in time")


async def _read_list(ask: AskPage, sieve: PageSieve, limits: Limits, name: str) -> list[object]:
    try:
        return await read_pages(ask, sieve, limits, name=name, most=limits.max_features)
    except MCPError as error:
        if error.code == METHOD_NOT_FOUND:
            return []
        raise


def _read_introduction(client: Client) -> ServerListing:
    about = client.server_info
    return ServerListing(
        definitions=(),
        server_name=about.name if about else "",
        server_title=(about.title or "") if about else "",
        server_version=about.version if about else "",
        protocol_version=client.protocol_version,
        instructions=client.instructions or "",
    )
