"""REST calls for servers. A server's name may contain a `/`."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from catalog.access.callers import ADMIN_KEY, ANY_KEY, Caller, caller_of
from catalog.api.preconditions import precondition_of, send_version
from catalog.api.tools import seen_by
from catalog.domain import dialects
from catalog.domain.choices import Kind, Transport
from catalog.domain.connection import Rejected
from catalog.domain.dialects.secrets import hide_secrets
from catalog.domain.dialects.servers import render_server
from catalog.domain.errors import Conflict, InvalidInput
from catalog.domain.problems import Problems, join_place
from catalog.models import Server
from catalog.request_bodies import Text
from catalog.schemas.servers import (
    AuthIn,
    AuthOut,
    ServerFieldsIn,
    ServerIn,
    ServerListOut,
    ServerOut,
    ServerPatchIn,
    SettingsOut,
)
from catalog.sealing import SealBroken
from catalog.selectors import rest
from catalog.selectors.rest import ServerWithSizes
from catalog.selectors.server_auth import read_auth
from catalog.selectors.servers import find_server
from catalog.services import config, oauth_clients, servers, snapshots
from catalog.services.catalog_lock import lock_catalog
from catalog.tasks import wake_workers_on_commit

router = Router(tags=["servers"], auth=ANY_KEY)

ADDRESS_FIELDS = ("command", "args", "secretArgs", "env", "cwd", "url", "headers", "timeoutSeconds")
COMMAND_FIELDS = ("command", "args", "secretArgs", "env", "cwd")
REJECTED_NAMED = 100  # a body of 1 MiB may hold hundreds of thousands


@router.get("/servers", operation_id="list_servers", summary="The catalog's servers", response=ServerListOut)
def get_servers(
    request: HttpRequest,
    limit: int = Query(100, ge=1, le=500),  # type: ignore[type-arg]
    cursor: Text | None = None,
) -> ServerListOut:
    """By name. An agent sees the servers of its policy's tools, without their settings."""
    caller = caller_of(request)
    page = rest.list_visible_servers(policy=seen_by(caller), limit=limit, cursor=cursor)
    return ServerListOut(items=[make_server_out(found, caller) for found in page.servers], next=page.next)


@router.get("/servers/{path:name}", operation_id="get_server", summary="One server", response=ServerOut)
def get_server(request: HttpRequest, response: HttpResponse, name: Text) -> ServerOut:
    """Its `ETag` is for the `If-Match` of a change."""
    caller = caller_of(request)
    found = rest.read_server(name, policy=seen_by(caller))
    send_version(response, servers.version_of(found.server))
    return make_server_out(found, caller)


@router.post(
    "/servers",
    operation_id="create_server",
    summary="Add a server",
    response={201: ServerOut},
    auth=ADMIN_KEY,
)
def create_server(request: HttpRequest, wanted: ServerIn) -> Status[ServerOut]:
    """By `command` or `url`, whose tools are then asked for; or a snapshot, with its `tools`."""
    caller = caller_of(request)
    prepared = _prepare(caller, wanted.name, wanted)
    with lock_catalog():
        servers.replace_demo_server(wanted.name)
        if Server.objects.filter(name=wanted.name).exists():
            raise Conflict(f"There is a server named {wanted.name} already.")
        return Status(201, _store(caller, wanted.name, wanted, prepared))


@router.patch(
    "/servers/{path:name}",
    operation_id="change_server",
    summary="Change a server",
    response=ServerOut,
    auth=ADMIN_KEY,
)
def change_server(
    request: HttpRequest, response: HttpResponse, name: Text, wanted: ServerPatchIn
) -> ServerOut:
    """Fields that are left out stay; a secret sent back as its `${NAME}` stays too.

    Where scheme, host or port of the address changes, or the command or its arguments, the variables and
    headers have to be given again, with their values. With an `If-Match` that no longer holds nothing is
    changed, and a 412 tells what has changed.
    """
    known = find_server(name)
    if wanted.name not in (None, known.name):
        raise InvalidInput.at("name", "cannot be changed: agents know the server's tools by it")
    caller = caller_of(request)
    prepared = _prepare(caller, known.name, wanted)
    with lock_catalog():
        servers.require_current_server(server=find_server(name), if_unchanged=precondition_of(request))
        stored = _store(caller, known.name, wanted, prepared)
        send_version(response, servers.version_of(find_server(name)))
    return stored


@router.delete(
    "/servers/{path:name}",
    operation_id="delete_server",
    summary="Remove a server and its tools",
    response={204: None},
    auth=ADMIN_KEY,
)
def delete_server(request: HttpRequest, name: Text) -> Status[None]:
    servers.delete_server(server=find_server(name), actor=caller_of(request).actor)
    wake_workers_on_commit()
    return Status(204, None)


def make_server_out(found: ServerWithSizes, caller: Caller) -> ServerOut:
    server = found.server
    return ServerOut(
        name=server.name,
        address=server.address,
        kind=Kind(server.kind),
        transport=Transport(server.transport),
        enabled=server.enabled,
        demo=server.demo,
        description=server.description,
        deferLoading=server.defer_loading,
        keepsNoState=server.keeps_no_state,
        status=server.status,
        tools=found.tools,
        tokens=found.tokens,
        last_refreshed_at=server.last_refreshed_at,
        last_error=server.last_error if caller.is_admin else "",
        auth=_describe_auth(server) if caller.is_admin else None,
        settings=_describe_settings(server) if caller.is_admin else None,
    )


def _describe_auth(server: Server) -> AuthOut:
    entry = servers.try_read_entry(server)
    auth = read_auth(server, header_names=entry.headers if entry else ())
    shown = {name: getattr(auth, name) for name in AuthOut.model_fields}
    return AuthOut.model_validate({**shown, "scopes": list(auth.scopes)})


def _describe_settings(server: Server) -> SettingsOut:
    """Secrets are masked; where they cannot be decrypted, only the address is shown."""
    try:
        shown = render_server(hide_secrets(servers.read_entry(server)))
    except SealBroken:
        shown = {"command": server.command, "url": server.url}
    address = {name: shown.get(name) for name in ADDRESS_FIELDS}
    return SettingsOut.model_validate({"refreshIntervalSeconds": server.refresh_interval_seconds, **address})


def _prepare(caller: Caller, name: str, wanted: ServerFieldsIn) -> list[snapshots.PreparedSnapshot]:
    """The slow part of storing a snapshot, done before the catalog is locked. Empty where no
    tools are given.
    """
    if wanted.tools is None:
        return []
    sent = wanted.given()
    problems = Problems()
    for field in ADDRESS_FIELDS:
        if sent.get(field):
            problems.add(field, "cannot be given with tools: a server has an address, or it is a snapshot")
    if sent.get("transport") not in (None, Transport.SNAPSHOT):
        problems.add("transport", "is snapshot where tools are given")
    problems.raise_if_any()
    prepared = snapshots.prepare_snapshots(
        definitions_by_server={name: wanted.tools}, actor=caller.actor, kind=wanted.kind
    )
    _refuse_rejected([rejected for one in prepared for rejected in one.rejected])
    return prepared


def _refuse_rejected(rejected: Sequence[Rejected]) -> None:
    """A file's bad definitions are kept out alone; in a body each is a mistake, named by its place."""
    problems = Problems()
    for one in rejected[:REJECTED_NAMED]:
        problems.add(join_place("tools", one.position), one.why)
    if len(rejected) > REJECTED_NAMED:
        problems.add("tools", f"{len(rejected) - REJECTED_NAMED} more cannot be used")
    problems.raise_if_any()


@lock_catalog()
def _store(
    caller: Caller, name: str, wanted: ServerFieldsIn, prepared: list[snapshots.PreparedSnapshot]
) -> ServerOut:
    sent = wanted.given()
    known = Server.objects.filter(name=name).first()
    shown = _describe_auth(known).model_dump() if known else {}
    if prepared:
        snapshots.store_snapshots(prepared=prepared, actor=caller.actor, kind=wanted.kind)
    elif _changes_address(name, sent):
        _store_address(caller, name, sent)
    server = Server.objects.get(name=name)
    _store_settings(caller, server, sent)
    if sent.get("auth") is not None:
        _store_auth(caller, server, sent["auth"], shown)
    wake_workers_on_commit()
    return make_server_out(rest.read_server(server.address, policy=None), caller)


def _store_settings(caller: Caller, server: Server, sent: dict[str, Any]) -> None:
    actor, seconds = caller.actor, sent.get("refreshIntervalSeconds")
    if sent.get("description") is not None:
        servers.set_description(server=server, description=sent["description"], actor=actor)
    if "deferLoading" in sent:
        servers.set_defer_loading(server=server, defer_loading=sent["deferLoading"], actor=actor)
    if sent.get("enabled") is not None:
        servers.set_enabled(server=server, enabled=sent["enabled"], actor=actor)
    if sent.get("kind") is not None:
        servers.set_kind(server=server, kind=sent["kind"], actor=actor)
    if sent.get("keepsNoState") is not None:
        servers.set_keeps_no_state(server=server, keeps_no_state=sent["keepsNoState"], actor=actor)
    if seconds is not None:
        servers.set_refresh_interval(server=server, seconds=seconds, actor=actor)


def _store_auth(caller: Caller, server: Server, wanted: AuthIn, shown: dict[str, Any]) -> None:
    """`shown` is what an answer showed before this change: what is sent back like that is not asked for."""
    sent = wanted.model_dump(exclude_none=True)
    changed = {name: value for name, value in sent.items() if value != shown.get(name)}
    if changed:  # a new client gets its issuer too, which may be the one that is shown
        is_own = bool(_describe_auth(server).client_id)
        oauth_clients.change_client(server=server, given=changed if is_own else sent, actor=caller.actor)


def _changes_address(name: str, sent: dict[str, Any]) -> bool:
    """Whether the server is new, or gets another transport or any other part of an address."""
    known = Server.objects.filter(name=name).first()
    if known is None or any(sent.get(field) is not None for field in ADDRESS_FIELDS) or _unsets_timeout(sent):
        return True
    return sent.get("transport") not in (None, known.transport)


def _store_address(caller: Caller, name: str, sent: dict[str, Any]) -> None:
    """Imports the address as a config file, with the same checks; masked secrets keep their values."""
    parsed, left_out = parse_address(name, sent)
    config.import_config(config=parsed, policy_slug=caller.policy.slug, actor=caller.actor, left_out=left_out)


def parse_address(name: str, sent: dict[str, Any]) -> tuple[dialects.Config, frozenset[str]]:
    """The server as a config: the fields that were sent over those that are stored, as they are shown.

    Also the names of fields that were not sent.
    """
    entry = _known_entry(name)
    entry |= {field: value for field, value in sent.items() if field in ADDRESS_FIELDS and value is not None}
    if _unsets_timeout(sent):
        entry.pop("timeoutSeconds", None)
    if sent.get("transport") is not None:
        entry["type"] = str(sent["transport"])
    entry |= {field: sent[field] for field in ("enabled", "kind") if sent.get(field) is not None}
    if sent.get("command") or sent.get("url"):
        gone = ("url", "headers") if sent.get("command") else COMMAND_FIELDS
        entry = {field: value for field, value in entry.items() if field not in gone or field in sent}
    parsed = dialects.parse_config({"mcpServers": {name: entry}})
    return parsed, frozenset(field for field in ADDRESS_FIELDS if sent.get(field) is None)


def _unsets_timeout(sent: dict[str, Any]) -> bool:
    return "timeoutSeconds" in sent and sent["timeoutSeconds"] is None


def _known_entry(name: str) -> dict[str, Any]:
    """With another address a server of the demo is somebody's own."""
    server = Server.objects.filter(name=name).first()
    entry = render_server(hide_secrets(servers.read_entry(server))) if server else {}
    return {field: value for field, value in entry.items() if field != "demo"}
