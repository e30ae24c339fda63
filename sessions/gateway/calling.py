"""Calls a tool on its own server: checked at call time, limited, relayed, recorded."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

from django.db import DatabaseError, InterfaceError
from mcp import MCPError
from mcp_types import INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY

from catalog.domain.connection import FailureCode, UpstreamFailure
from catalog.domain.errors import InvalidInput, ToolSearchError
from catalog.domain.limits import GATEWAY_MESSAGE_BYTES
from catalog.domain.sizes import count_message_bytes
from catalog.domain.upstream_calls import (
    CallTimedOut,
    UpstreamBusy,
    UpstreamError,
    UpstreamSuspended,
)
from catalog.sealing import SealBroken
from catalog.services.call_targets import CallTarget, read_target
from sessions.gateway.answers import JsonObject, answer_error, pass_error
from sessions.gateway.arguments import check_arguments
from sessions.gateway.callers import Caller
from sessions.gateway.clients import ClientSeen, Context, note_client, read_header_schema
from sessions.gateway.open_calls import OpenCalls, TooManyOpenCalls
from sessions.gateway.recording import CallReport, describe_call, describe_own_refusal, find_secrets
from sessions.gateway.results import CutResult, WrongShape, is_unfinished, limit_result, read_result
from sessions.gateway.signed_in import SignedInRequests
from sessions.gateway.threads import Threads
from sessions.models import CallOutcome, Via
from sessions.services import calls, kept_results
from sessions.services.client_sessions import find_client_session

# Of a request's `_meta`: the rest is passed on.
_OWN_META = ("progressToken",)
_RESERVED_META = "io.modelcontextprotocol/"
TRACE_HEADERS = ("traceparent", "tracestate", "baggage")

MOST_HEADER_CHARS = 2000
_DO_NOT_FIT = "The arguments do not fit the tool's input schema"
logger = logging.getLogger(__name__)

CountCall = Callable[[str, str, float], None]  # outcome, via, seconds that the gateway added
NoteRefused = Callable[[int, str], None]  # a server's id, and what of it cannot pass


def unknown_tool(name: str) -> MCPError:
    """The same for one that never was and one that this key may not see."""
    return MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {name[:200]}")


class Refused(Exception):
    """A call of a known tool that is not made. The message is for the model; a record has `recorded` instead
    where the message tells of arguments.
    """

    def __init__(self, message: str, *, recorded: str = "") -> None:
        super().__init__(message)
        self.message, self.recorded = message, recorded or message


class Calls:
    """The calls of one gateway process."""

    def __init__(
        self,
        requests: SignedInRequests,
        threads: Threads,
        open_calls: OpenCalls,
        *,
        count_call: CountCall,
        note_refused: NoteRefused,
    ) -> None:
        self._requests = requests
        self._threads = threads
        self._open = open_calls
        self._count_call = count_call
        self._note_refused = note_refused

    async def call(self, context: Context, report: CallReport) -> JsonObject:
        """The result for the client, whatever happens. Raises MCPError for a tool that is not there now, and
        for a server's error that is for the client's program.
        """
        try:
            with self._open.counted(report.caller.key_id):
                result = await self._try(context, report)
        except MCPError:
            raise  # unknown: not a call
        except TooManyOpenCalls as too_many:
            report.end(CallOutcome.REFUSED, str(too_many))
            result = answer_error(str(too_many), retry_after_seconds=too_many.retry_after_seconds)
        except UpstreamError as error:
            report.end(CallOutcome.TOOL_ERROR, error.message)
            self._record(report)
            raise pass_error(error) from None
        except Refused as refused:
            report.end(CallOutcome.REFUSED, refused.recorded)
            result = answer_error(refused.message)
        except asyncio.CancelledError:
            report.end(CallOutcome.CANCELLED)
            self._record(report)
            raise
        except Exception:
            report.end(CallOutcome.UPSTREAM_FAILED, "The gateway failed; its log tells why.")
            self._record(report)
            raise
        self._record(report)
        return result

    def refuse(self, report: CallReport, message: str) -> JsonObject:
        """The answer to a call that cannot be read, recorded too."""
        report.end(CallOutcome.REFUSED, message)
        self._record(report)
        return answer_error(message)

    def refuse_own(
        self, caller: Caller, client: ClientSeen, name: str, message: str, arguments: Mapping[str, Any]
    ) -> JsonObject:
        """The answer to bad input of one of the gateway's own tools, recorded too."""
        self._count_call(CallOutcome.REFUSED, Via.DIRECT, 0.0)
        calls.enqueue_call(describe_own_refusal(caller, client, name, message, arguments))
        return answer_error(message)

    async def _try(self, context: Context, report: CallReport) -> JsonObject:
        target = await self._threads.run(_prepare, report)
        if target is None:
            raise unknown_tool(report.name)
        raw = await self._ask(context, report, target)
        return raw if report.outcome is not CallOutcome.OK else await self._finish(report, target, raw)

    async def _ask(self, context: Context, report: CallReport, target: CallTarget) -> JsonObject:
        """The server's own result, or what is said in its place; the report tells which."""
        policy, asked_at = report.caller.policy, time.perf_counter()
        try:
            result = await self._requests.request(
                target.upstream,
                report.client.holder(report.caller.key_id),
                "tools/call",
                _write_params(context, target, report.arguments),
                timeout_seconds=policy.call_timeout_seconds,
                note_token=report.note_token,
                on_progress=context.session.report_progress if _wants_progress(context) else None,
                input_schema=read_header_schema(report.tool.offered.text.schema),
            )
        except ToolSearchError as error:
            if isinstance(error, UpstreamError) and _is_for_program(context, error):
                raise
            return _explain(report, error)
        finally:
            report.upstream_seconds = time.perf_counter() - asked_at
        report.end(CallOutcome.OK)
        return result

    async def _finish(self, report: CallReport, target: CallTarget, raw: JsonObject) -> JsonObject:
        if is_unfinished(raw):
            return self._pass_question(report, target, raw)
        try:
            result = read_result(raw, target.upstream.name)
        except WrongShape:
            return _fail(report, "The server's answer is not what MCP asks for.")
        report.result = result
        if result.get("isError") is True:
            report.end(CallOutcome.TOOL_ERROR)
        limited = limit_result(result, max_tokens=report.caller.policy.max_result_tokens)
        if not isinstance(limited, CutResult):
            return limited
        report.is_cut = True
        return limited.finish(await self._keep(report.caller.key_id, limited))

    async def _keep(self, key_id: int, cut: CutResult) -> str | None:
        """The handle of what was cut; None where nothing is kept. The call was carried out, so a database
        that went away meanwhile fails nothing.
        """
        if not cut.is_more:
            return None
        try:
            return await self._threads.run(_keep, key_id, cut.text)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("what was cut of a result could not be kept: %s", error)
            return None

    def _pass_question(self, report: CallReport, target: CallTarget, raw: JsonObject) -> JsonObject:
        """A server that asks its client for something: only the newest revision can answer."""
        if not report.client.is_modern:
            self._note_refused(target.upstream.server_id, "input_required")
            return _refuse(report, "The tool asks for more input, which this client's revision cannot give.")
        if count_message_bytes(raw) > GATEWAY_MESSAGE_BYTES:
            return _fail(report, "The server's question is larger than a message may be.")
        report.result = raw
        return raw

    def _record(self, report: CallReport) -> None:
        """Cheap: what is recorded is written behind."""
        ended = time.perf_counter() - report.started
        added = ended - (report.upstream_seconds or 0.0)
        self._count_call(report.outcome, report.via, added)
        note_client(report.caller, report.client, is_call=True)
        calls.enqueue_call(describe_call(report, ended))


def _prepare(report: CallReport) -> CallTarget | None:
    """Raises Refused for arguments that do not fit, and where a tool has to be read-only and is not."""
    caller, text = report.caller, report.tool.offered.text
    report.session_id = find_client_session(
        key_id=caller.key_id, policy_id=caller.policy_id, client=report.client.name
    )
    try:
        target = read_target(text.id, caller.policy)
    except SealBroken as broken:
        raise Refused(
            "The server's settings cannot be read: an admin has to give its secrets again."
        ) from broken
    if target is None:
        return None
    if report.via is Via.CALL_READ_TOOL and not target.is_read_only:
        raise Refused(f"{report.tool.name} is not a read-only tool: call it with call_tool.")
    try:
        check_arguments(text, report.arguments)
    except InvalidInput as problem:
        lines = "\n".join(f"- {one}" for one in problem.errors)
        places = ", ".join(dict.fromkeys(one.place for one in problem.errors))
        raise Refused(
            f"{_DO_NOT_FIT}:\n{lines}",
            recorded=f"{_DO_NOT_FIT}: {places}",  # without values
        ) from None
    _check_headers(text.schema, report.arguments)
    if report.is_full:
        report.secrets = find_secrets(target.upstream)
    return target


def _check_headers(schema: str, arguments: Mapping[str, Any]) -> None:
    """Of a tool that wants parameters as headers: servers take no header of any length. Raises Refused."""
    read = read_header_schema(schema)
    properties = read.get("properties") if read else None
    for name, parameter in (properties or {}).items():
        value = arguments.get(name)
        is_header = isinstance(parameter, dict) and "x-mcp-header" in parameter
        if is_header and isinstance(value, str) and len(value) > MOST_HEADER_CHARS:
            message = (
                f"{_DO_NOT_FIT}: arguments.{name}: is sent as a header, so it may have {MOST_HEADER_CHARS}"
            )
            raise Refused(f"{message} characters at most")


def _write_params(context: Context, target: CallTarget, arguments: Mapping[str, Any]) -> JsonObject:
    params: JsonObject = {"name": target.tool, "arguments": dict(arguments), **read_input(context)}
    meta = read_meta(context)
    return {**params, "_meta": meta} if meta else params


def read_input(context: Context) -> JsonObject:
    """What the client sends for a server that asked for more input: passed on as it is."""
    given = context.params or {}
    return {name: given[name] for name in ("inputResponses", "requestState") if name in given}


def read_meta(context: Context) -> JsonObject:
    """What of the request's `_meta` is passed on, and its trace."""
    given = (context.params or {}).get("_meta") or {}
    meta = {
        name: value
        for name, value in given.items()
        if name not in _OWN_META and not name.startswith(_RESERVED_META)
    }
    headers = context.request.headers if context.request is not None else {}
    trace = {name: headers[name] for name in TRACE_HEADERS if name in headers and name not in meta}
    return {**trace, **meta}


def _wants_progress(context: Context) -> bool:
    return "progressToken" in ((context.params or {}).get("_meta") or {})


def _is_for_program(context: Context, error: UpstreamError) -> bool:
    """Whether the client's program has to hear of it, not the model: what it lacks, or sent back wrongly."""
    has_sent_back = "requestState" in (context.params or {})
    return error.code == MISSING_REQUIRED_CLIENT_CAPABILITY or has_sent_back


def _explain(report: CallReport, error: ToolSearchError) -> JsonObject:
    """A failure in words for the model; the record has the server's own, which are for admins."""
    server = report.tool.offered.text.server
    match error:
        case CallTimedOut():
            report.end(CallOutcome.TIMEOUT, str(error))
            return answer_error(str(error))
        case UpstreamError():
            report.end(CallOutcome.TOOL_ERROR, error.message)
            return answer_error(f"The server answered with an error: {error.message}", code=error.code)
        case UpstreamBusy():
            report.end(CallOutcome.REFUSED, str(error))
            return answer_error(
                f"Too many connections to {server} are in use: try again.",
                retry_after_seconds=ceil(error.retry_after_seconds),
            )
        case UpstreamSuspended():
            report.end(CallOutcome.UPSTREAM_FAILED, str(error))
            return answer_error(
                f"The server {server} failed several times in a row and is left alone for a while.",
                retry_after_seconds=ceil(error.retry_after_seconds),
            )
        case UpstreamFailure():
            report.end(CallOutcome.UPSTREAM_FAILED, str(error))
            return answer_error(_say_failed(server, error.code))
        case _:
            raise error


def _say_failed(server: str, code: FailureCode) -> str:
    """Without what the failure's own message tells of the server's settings."""
    match code:
        case FailureCode.EXITED | FailureCode.DISCONNECTED:
            return f"The server {server} ended during the call: whether it was carried out is not known."
        case FailureCode.TOO_LARGE | FailureCode.TOO_MANY_MESSAGES:
            return f"The server {server} sent more than may be, and was cut off."
        case FailureCode.SCOPE_NEEDED:
            return f"The server {server} asks for more rights: an admin has to grant them."
        case FailureCode.SIGN_IN_NEEDED | FailureCode.RECONNECT_NEEDED | FailureCode.CLIENT_REFUSED:
            return f"The server {server} needs a sign-in: an admin has to connect it."
        case _:
            return f"The server {server} could not be reached."


def _fail(report: CallReport, message: str) -> JsonObject:
    report.end(CallOutcome.UPSTREAM_FAILED, message)
    return answer_error(message)


def _refuse(report: CallReport, message: str) -> JsonObject:
    report.end(CallOutcome.REFUSED, message)
    return answer_error(message)


def _keep(key_id: int, text: str) -> str | None:
    return kept_results.keep_result(key_id=key_id, text=text)
