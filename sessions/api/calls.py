"""The REST call that lists recorded calls, for admins."""

from django.http import HttpRequest
from ninja import Query, Router

from catalog.access.callers import ADMIN_KEY
from sessions.models import Call, CallOutcome, Via
from sessions.schemas import CallListOut, CallOut, CallQuery
from sessions.selectors import calls
from sessions.selectors.calls import CallFilter

router = Router(tags=["calls"], auth=ADMIN_KEY)


@router.get("/calls", operation_id="list_calls", summary="Calls through the gateway", response=CallListOut)
def list_calls(request: HttpRequest, asked: Query[CallQuery]) -> CallListOut:
    """The newest first. `key` is a key's name or id, `tool` a qualified name."""
    wanted = CallFilter(
        key=asked.key or "", server=asked.server or "", tool=asked.tool or "", outcome=asked.outcome
    )
    before = calls.read_place(asked.cursor) if asked.cursor is not None else None
    part = calls.read_part(wanted, before=before, most=asked.limit)
    return CallListOut(
        items=[describe_call(call) for call in part.calls], next=part.older.cursor if part.older else None
    )


def describe_call(call: Call) -> CallOut:
    return CallOut(
        id=call.pk,
        at=call.at,
        key=call.key_name,
        client=call.client,
        revision=call.revision,
        policy=call.policy,
        server=call.server,
        tool=call.tool,
        via=Via(call.via),
        outcome=CallOutcome(call.outcome),
        duration_ms=call.duration_ms,
        upstream_ms=call.upstream_ms,
        request_bytes=call.request_bytes,
        result_bytes=call.result_bytes,
        is_cut=call.is_cut,
        error=call.error,
    )
