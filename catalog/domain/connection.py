"""Connections to servers: address, limits, rules for commands, and the listing received."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

from catalog.domain import limits
from catalog.domain.addresses import AddressRules
from catalog.domain.choices import Transport
from catalog.domain.errors import ToolSearchError
from catalog.domain.oauth import Challenge
from catalog.domain.references import PLACEHOLDER, REFERENCE, ReferenceRules, names_in, texts_of

JsonObject = dict[str, Any]


# HTTP routes and frames a message by these. With a Host of its own choice a definition would send a server's
# secrets to another tenant of the same machine.
ROUTING_HEADERS = frozenset(
    (
        *("host", "connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "expect"),
        *("content-length", "transfer-encoding"),
    )
)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")


def why_header_refused(name: str) -> str | None:
    """Why a header's name is refused; None where a definition may set it."""
    if name.strip().lower() in ROUTING_HEADERS or name.startswith(":"):
        return "is set by HTTP itself: remove it"
    return None if _HEADER_NAME.fullmatch(name) else "is not the name of a header"


class FailureCode(StrEnum):
    """Why a server could not be listed or called. Stored with the run, so values must not change."""

    COMMAND_NOT_FOUND = "command_not_found"
    FOLDER_NOT_FOUND = "folder_not_found"
    STDIO_NOT_ALLOWED = "stdio_not_allowed"
    EXITED = "exited"
    INVALID_ADDRESS = "invalid_address"
    BLOCKED_ADDRESS = "blocked_address"
    UNKNOWN_HOST = "unknown_host"
    REFUSED = "refused"
    TLS = "tls"
    UNAUTHORIZED = "unauthorized"
    SIGN_IN_NEEDED = "sign_in_needed"
    SCOPE_NEEDED = "scope_needed"
    RECONNECT_NEEDED = "reconnect_needed"
    CLIENT_REFUSED = "client_refused"
    SIGN_IN_SERVER_DOWN = "sign_in_server_down"
    SIGN_IN_UNUSABLE = "sign_in_unusable"
    HTTP_STATUS = "http_status"
    REDIRECTED = "redirected"
    DISCONNECTED = "disconnected"
    CONNECT_TIMEOUT = "connect_timeout"
    LIST_TIMEOUT = "list_timeout"
    NOT_MCP = "not_mcp"
    WRONG_PROTOCOL = "wrong_protocol"
    LIST_REFUSED = "list_refused"
    TOO_LARGE = "too_large"
    TOO_MANY_MESSAGES = "too_many_messages"
    TOO_MANY_PAGES = "too_many_pages"
    REPEATED_CURSOR = "repeated_cursor"
    TOO_MANY_TOOLS = "too_many_tools"
    MISSING_VARIABLE = "missing_variable"
    SECRETS_UNREADABLE = "secrets_unreadable"
    BUSY = "busy"
    SUSPENDED = "suspended"
    CLOSED = "closed"
    UNEXPECTED = "unexpected"


# What an admin mends by signing in, again or for more: asking the server again would change nothing.
SIGN_IN_CODES = (FailureCode.SIGN_IN_NEEDED, FailureCode.SCOPE_NEEDED, FailureCode.RECONNECT_NEEDED)


class UpstreamFailure(ToolSearchError):
    """A server could not be listed or called. `message` is for admins and holds no secret value.

    `challenge` is what the server said when it asked for a sign-in, `retry_after_seconds` how long a sign-in
    server wants to be left alone.
    """

    status: ClassVar[int] = 502
    title: ClassVar[str] = "Server not reachable"

    def __init__(
        self,
        code: FailureCode,
        message: str,
        *,
        stderr_tail: str = "",
        challenge: Challenge | None = None,
        retry_after_seconds: float = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.stderr_tail = stderr_tail
        self.challenge = challenge
        self.retry_after_seconds = retry_after_seconds

    def reworded(self, message: str, *, stderr_tail: str = "") -> "UpstreamFailure":
        """The same failure with another text, as one that can be raised again."""
        return UpstreamFailure(self.code, message, stderr_tail=stderr_tail, challenge=self.challenge)


@dataclass(frozen=True, slots=True, repr=False)
class Connection:
    """The address of a server. Values may hold `${VAR}` and `${VAR:-default}` until `resolve`
    fills them in.
    """

    transport: Transport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    timeout_seconds: int | None = None  # in place of both limits of a listing
    secret_args: tuple[int, ...] = ()  # positions, from 0, that an admin has marked as secret

    def __repr__(self) -> str:
        """Names only: arguments, variables, headers, paths and queries may be secrets."""
        if self.transport is Transport.STDIO:
            given = ", ".join(sorted(self.env))
            return f"Connection(stdio, {self.command!r}, {len(self.args)} args, env: {given or 'none'})"
        given = ", ".join(sorted(self.headers))
        return f"Connection({self.transport}, {self.origin!r}, headers: {given or 'none'})"

    @property
    def origin(self) -> str:
        """The part of the URL that is safe to show: scheme, host and port."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one listing, or of one connection that is kept.

    `max_total_bytes` counts everything that a server sends, `max_message_bytes` one message of it.
    `max_features` is how many resources, templates and prompts each: with 0 the server is not asked for any.
    `max_requests` and `max_notifications` are what it may send unasked: a listing needs neither.
    """

    connect_timeout_seconds: float = 30.0
    list_timeout_seconds: float = 30.0
    close_timeout_seconds: float = 2.0
    total_timeout_seconds: float = math.inf
    max_pages: int = limits.LISTING_PAGES
    max_tools: int = limits.LISTING_TOOLS
    max_features: int = limits.LISTING_FEATURES
    max_features_bytes: int = limits.LISTING_FEATURES_BYTES
    max_definition_bytes: int = limits.DEFINITION_BYTES
    max_total_bytes: float = limits.LISTING_BYTES
    max_message_bytes: int = limits.MESSAGE_BYTES
    max_bytes_per_second: float = math.inf
    max_requests: int = limits.LISTING_REQUESTS
    max_notifications: int = limits.LISTING_NOTIFICATIONS
    stderr_tail_bytes: int = 4096


@dataclass(frozen=True, slots=True)
class StdioRules:
    """Which commands may run on our machine.

    `allowed_commands` lists commands as they are written in the definition; `None` allows every one.
    Variables that change which code a command runs, such as `PATH`, `LD_PRELOAD` or `PYTHONPATH`, would be a
    way round such a list: where there is one, no definition may set them.
    """

    enabled: bool = True
    allowed_commands: frozenset[str] | None = None

    @property
    def refuses_loader_variables(self) -> bool:
        return self.allowed_commands is not None


@dataclass(frozen=True, slots=True)
class Rules:
    stdio: StdioRules = field(default_factory=StdioRules)
    addresses: AddressRules = field(default_factory=AddressRules)
    references: ReferenceRules = field(default_factory=ReferenceRules)


# Which setting of a server mends a failure. The others need a look at the server itself.
_FIELDS_OF_FAILURES = {
    FailureCode.UNAUTHORIZED: "headers",
    FailureCode.COMMAND_NOT_FOUND: "command",
    FailureCode.FOLDER_NOT_FOUND: "cwd",
    FailureCode.STDIO_NOT_ALLOWED: "command",
    FailureCode.EXITED: "args",
    FailureCode.INVALID_ADDRESS: "url",
    FailureCode.BLOCKED_ADDRESS: "url",
    FailureCode.UNKNOWN_HOST: "url",
    FailureCode.REFUSED: "url",
    FailureCode.TLS: "url",
    FailureCode.HTTP_STATUS: "url",
    FailureCode.REDIRECTED: "url",
    FailureCode.DISCONNECTED: "url",
    FailureCode.CONNECT_TIMEOUT: "timeout_seconds",
    FailureCode.LIST_TIMEOUT: "timeout_seconds",
}
_NAMED_VARIABLE = re.compile(r"(?i:the variable) ([A-Za-z_][A-Za-z0-9_]*)")


def field_that_mends(code: str, message: str, connection: Connection) -> str:
    """The name of the setting that mends a failure; empty where none does."""
    is_command = connection.transport is Transport.STDIO
    if code == FailureCode.MISSING_VARIABLE:
        return _field_of_variable(message, connection)
    if code == FailureCode.SECRETS_UNREADABLE:
        return "env" if is_command else "headers"
    if code == FailureCode.NOT_MCP:
        return "command" if is_command else "url"
    if code == FailureCode.STDIO_NOT_ALLOWED and _NAMED_VARIABLE.search(message):
        return "env"
    if code == FailureCode.INVALID_ADDRESS and "header" in message:
        return "headers"
    return _FIELDS_OF_FAILURES.get(FailureCode(code), "") if code in set(FailureCode) else ""


def _field_of_variable(message: str, connection: Connection) -> str:
    """Where the variable that the message names is referred to."""
    named = _NAMED_VARIABLE.search(message)
    for place, text in texts_of(connection):
        if named and named[1] in names_in([text]):
            return re.split(r"[.\[]", place)[0]
    return "env" if connection.transport is Transport.STDIO else "headers"


class Rejected(NamedTuple):
    """A rejected definition. `name` is what the server called it, or its place in the list.

    `position` is that place, from 0.
    """

    name: str
    why: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class Features:
    """What a server offers beside its tools, in MCP's wire form, in the server's order.

    `completions` is whether it completes arguments of prompts and templates.
    """

    resources: tuple[JsonObject, ...] = ()
    templates: tuple[JsonObject, ...] = ()
    prompts: tuple[JsonObject, ...] = ()
    completions: bool = False


@dataclass(frozen=True, slots=True)
class ServerListing:
    """A server's answer. Definitions are in MCP's wire form, in the server's order.

    `masked` are the names of those in which a secret was masked. `features` is None where the server was not
    asked for any, or they could not be listed.
    """

    definitions: tuple[JsonObject, ...]
    rejected: tuple[Rejected, ...] = ()
    server_name: str = ""
    server_title: str = ""
    server_version: str = ""
    protocol_version: str = ""
    instructions: str = ""
    stderr_tail: str = ""
    masked: frozenset[str] = frozenset()
    features: Features | None = None


def resolve(
    connection: Connection, environment: Mapping[str, str], rules: ReferenceRules | None = None
) -> Connection:
    """Fill in every `${VAR}` from `environment`.

    Raises UpstreamFailure naming a variable that has no value, or that no server may use.
    """
    rules = rules or ReferenceRules()

    def fill(text: str) -> str:
        if lacking := PLACEHOLDER.search(text):
            raise _unusable(f"The value of {lacking[0]} was never given: give it in the server's settings")
        return REFERENCE.sub(lambda found: _value_of(found, environment, rules), text)

    return replace(
        connection,
        command=fill(connection.command),
        args=tuple(fill(arg) for arg in connection.args),
        env={name: fill(value) for name, value in connection.env.items()},
        url=fill(connection.url),
        headers={name: fill(value) for name, value in connection.headers.items()},
        cwd=fill(connection.cwd),
    )


def _value_of(reference: re.Match[str], environment: Mapping[str, str], rules: ReferenceRules) -> str:
    """An empty variable counts as unset, like `:-` in a shell."""
    name, default = reference.groups()
    if why := rules.why_refused(name):
        raise _unusable(f"{why[:1].upper()}{why[1:]}")
    value = environment.get(name) or default
    if value is None:
        raise _unusable(
            f"The variable {name} is not set where the worker runs: set it there, or give the value itself"
        )
    if rules.is_own_value(value):
        raise _unusable(f"The variable {name} holds a secret of this service: no server may use it")
    return value


def _unusable(message: str) -> UpstreamFailure:
    return UpstreamFailure(FailureCode.MISSING_VARIABLE, message)
