"""A call on its way into the records."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from catalog.domain.connection import UpstreamFailure, resolve
from catalog.domain.policy import RecordCalls
from catalog.domain.sizes import count_message_bytes
from catalog.domain.upstream_calls import Upstream
from catalog.upstream.masking import secrets_when_resolved
from sessions.gateway.callers import Caller
from sessions.gateway.clients import ClientSeen
from sessions.models import CallOutcome, Via
from sessions.offers.gateway_offer import GatewayTool
from sessions.services import calls


@dataclass(slots=True)
class CallReport:
    """`name` is the tool's as the client gave it; `secrets` are those of the server's settings."""

    caller: Caller
    client: ClientSeen
    tool: GatewayTool
    name: str
    via: Via
    arguments: Mapping[str, Any]
    at: datetime = field(default_factory=timezone.now)
    started: float = field(default_factory=time.perf_counter)
    session_id: UUID | None = None
    upstream_seconds: float | None = None
    outcome: CallOutcome = CallOutcome.UPSTREAM_FAILED
    error: str = ""
    result: Mapping[str, Any] | None = None
    is_cut: bool = False
    secrets: tuple[str, ...] = ()

    @property
    def is_full(self) -> bool:
        """Whether arguments and result are recorded too."""
        return self.caller.policy.record_calls is RecordCalls.FULL

    def note_token(self, token: str) -> None:
        """One that was sent to the server, and may be in no record."""
        if token and self.is_full:
            self.secrets = (token, *self.secrets)

    def end(self, outcome: CallOutcome, error: str = "") -> None:
        self.outcome, self.error = outcome, error


def find_secrets(upstream: Upstream) -> tuple[str, ...]:
    """What may be in no record of a call of this server."""
    connection, environment = upstream.connection, os.environ
    try:
        resolved = resolve(connection, environment, upstream.rules.references)
    except UpstreamFailure:  # and so it is not called either
        resolved = connection
    return secrets_when_resolved(connection, resolved, environment)


def describe_call(report: CallReport, ended: float) -> calls.PendingCall:
    caller, text, upstream = report.caller, report.tool.offered.text, report.upstream_seconds
    call = calls.PendingCall(
        at=report.at,
        key_id=caller.key_id,
        key_name=caller.key_name,
        session_id=report.session_id,
        policy=caller.policy.slug,
        client=report.client.name,
        revision=report.client.revision,
        server=text.server,
        tool=text.name,
        via=report.via,
        outcome=report.outcome,
        duration_ms=round(ended * 1000),
        upstream_ms=None if upstream is None else round(upstream * 1000),
        request_bytes=count_message_bytes(report.arguments),
        result_bytes=0 if report.result is None else count_message_bytes(report.result),
        is_cut=report.is_cut,
        error=report.error,
    )
    if not report.is_full:
        return call
    return replace(
        call,
        arguments=calls.write_recorded(report.arguments, report.secrets),
        result="" if report.result is None else calls.write_recorded(report.result, report.secrets),
    )


def describe_own_refusal(
    caller: Caller, client: ClientSeen, name: str, message: str, arguments: Mapping[str, Any]
) -> calls.PendingCall:
    """Of one of the gateway's own tools, whose input was bad."""
    return calls.PendingCall(
        at=timezone.now(),
        key_id=caller.key_id,
        key_name=caller.key_name,
        session_id=None,
        policy=caller.policy.slug,
        client=client.name,
        revision=client.revision,
        server="",
        tool=name,
        via=Via.DIRECT,
        outcome=CallOutcome.REFUSED,
        duration_ms=0,
        upstream_ms=None,
        request_bytes=count_message_bytes(arguments),
        result_bytes=0,
        is_cut=False,
        error=message,
    )
