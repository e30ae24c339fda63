"""The client behind a request: how it names itself, its revision, and what it can answer."""

import json
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from catalog.access.key_uses import keep_printable
from catalog.domain.upstream_calls import LeaseHolder
from sessions.gateway.callers import Caller
from sessions.models.gateway import MAX_NAME_CHARS
from sessions.services import calls

CALLER = "toolsearch.caller"  # in the scope of a request
# For what the SDK asks before it hands out the request: set while a request is served.
present_caller: ContextVar[Caller] = ContextVar("present_caller")
# What a server may ask in its result, which is passed on as it is.
QUESTIONS = {"elicitation", "sampling", "roots"}

Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class ClientSeen:
    """`is_modern` is a client of a revision that can be asked for more input in the middle of a call."""

    name: str
    version: str
    revision: str
    is_modern: bool
    answers: frozenset[str]

    def holder(self, key_id: int) -> LeaseHolder:
        """Clients of older revisions get connections of their own, on which a server asks for nothing."""
        return LeaseHolder(key_id, "auto" if self.is_modern else "legacy", self.answers)


def caller_of(context: Context) -> Caller:
    """The caller that the key's check found."""
    assert context.request is not None
    caller = context.request.scope[CALLER]
    assert isinstance(caller, Caller)
    return caller


def find_header_schema(name: str) -> dict[str, Any] | None:
    """The input schema of a tool, where it wants parameters as headers too: the SDK compares the two."""
    tool = present_caller.get().offer.by_name.get(name)
    schema = "" if tool is None else tool.offered.text.schema
    return read_header_schema(schema)


def read_header_schema(schema: str) -> dict[str, Any] | None:
    """Few tools want parameters as headers."""
    return json.loads(schema) if "x-mcp-header" in schema else None


def read_client(context: Context) -> ClientSeen:
    """Old revisions say their name when they begin, and afterwards by User-Agent alone."""
    revision = context.protocol_version
    is_modern = revision in MODERN_PROTOCOL_VERSIONS
    params, capabilities = context.session.client_params, context.session.client_capabilities
    name, _, version = caller_of(context).user_agent.partition("/")
    if params is not None:
        name, version = params.client_info.name, params.client_info.version
    able = capabilities.model_dump(include=QUESTIONS, exclude_none=True) if capabilities is not None else {}
    return ClientSeen(
        name=_tidy(name),
        version=_tidy(version),
        revision=revision,
        is_modern=is_modern,
        answers=frozenset(able) if is_modern else frozenset(),
    )


def name_client(caller: Caller, revision: str, info: Mapping[str, Any] | None) -> ClientSeen:
    """The client of a message of the newest revision by what it says of itself, where it cannot be asked."""
    name, _, version = caller.user_agent.partition("/")
    if info is not None:
        name, version = info["name"], info["version"]
    return ClientSeen(_tidy(name), _tidy(version), revision, is_modern=True, answers=frozenset())


def note_client(caller: Caller, client: ClientSeen, *, is_call: bool) -> None:
    calls.enqueue_client(
        key_id=caller.key_id,
        name=client.name,
        version=client.version,
        revision=client.revision,
        exposure=caller.offer.exposure,
        at=timezone.now(),
        is_call=is_call,
    )


def _tidy(text: str) -> str:
    return keep_printable(text[:MAX_NAME_CHARS])
