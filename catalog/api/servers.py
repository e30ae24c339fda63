"""Servers by REST: what the catalog's tools come from. A server's name may hold a `/`."""

from typing import Any

from django.db import transaction
from django.http import HttpRequest
from ninja import Query, Router, Status

from catalog.api.tools import seen_by
from catalog.callers import ADMIN_KEY, ANY_KEY, Caller, caller_of
from catalog.domain import dialects
from catalog.domain.choices import Kind, Transport
from catalog.domain.dialects.secrets import hide_secrets
from catalog.domain.dialects.servers import render_server
from catalog.domain.errors import Conflict
from catalog.models import Server
from catalog.schemas import (
    ServerFieldsIn,
    ServerIn,
    ServerListOut,
    ServerOut,
    ServerPatchIn,
    SettingsOut,
    Text,
)
from catalog.sealing import SealBroken
from catalog.selectors import rest
from catalog.selectors.rest import ServerWithSizes
from catalog.selectors.servers import find_server
from catalog.services import config, server_settings, servers, snapshots
from catalog.tasks import wake_workers_on_commit

router = Router(tags=["servers"], auth=ANY_KEY)

ADDRESS_FIELDS = ("command", "args", "env", "url", "headers")


@router.get("/servers", operation_id="list_servers", summary="The catalog's servers", response=ServerListOut)
def list_servers(
    request: HttpRequest,
    limit: int = Query(100, ge=1, le=500),  # type: ignore[type-arg]
    cursor: Text | None = None,
) -> ServerListOut:
    """By name. An agent sees the servers of its policy's tools, without their settings."""
    caller = caller_of(request)
    page = rest.list_servers(policy=seen_by(caller), limit=limit, cursor=cursor)
    return ServerListOut(items=[describe_server(found, caller) for found in page.servers], next=page.next)


@router.get("/servers/{path:name}", operation_id="get_server", summary="One server", response=ServerOut)
def get_server(request: HttpRequest, name: Text) -> ServerOut:
    caller = caller_of(request)
    return describe_server(rest.read_server(name, policy=seen_by(caller)), caller)


@router.post(
    "/servers",
    operation_id="create_server",
    summary="Add a server",
    response={201: ServerOut},
    auth=ADMIN_KEY,
)
def create_server(request: HttpRequest, wanted: ServerIn) -> Status[ServerOut]:
    """By `command` or `url`, whose tools are then asked for; or a snapshot, with its `tools`."""
    if Server.objects.filter(name=wanted.name).exists():
        raise Conflict(f"There is a server named {wanted.name} already.")
    return Status(201, _store(caller_of(request), wanted.name, wanted))


@router.patch(
    "/servers/{path:name}",
    operation_id="change_server",
    summary="Change a server",
    response=ServerOut,
    auth=ADMIN_KEY,
)
def change_server(request: HttpRequest, name: Text, wanted: ServerPatchIn) -> ServerOut:
    """Fields that are left out stay; a secret sent back as its `${NAME}` stays too."""
    find_server(name)
    return _store(caller_of(request), name, wanted)


@router.delete(
    "/servers/{path:name}",
    operation_id="delete_server",
    summary="Remove a server and its tools",
    response={204: None},
    auth=ADMIN_KEY,
)
def delete_server(request: HttpRequest, name: Text) -> Status[None]:
    server_settings.delete_server(server=find_server(name), actor=caller_of(request).actor)
    wake_workers_on_commit()
    return Status(204, None)


def describe_server(found: ServerWithSizes, caller: Caller) -> ServerOut:
    server = found.server
    return ServerOut(
        name=server.name,
        kind=Kind(server.kind),
        transport=Transport(server.transport),
        enabled=server.enabled,
        deferLoading=server.defer_loading,
        status=server.status,
        tools=found.tools,
        tokens=found.tokens,
        last_refreshed_at=server.last_refreshed_at,
        last_error=server.last_error if caller.is_admin else "",
        settings=_describe_settings(server) if caller.is_admin else None,
    )


def _describe_settings(server: Server) -> SettingsOut:
    """Secrets are masked; where they cannot be opened, only the address is shown."""
    try:
        shown = render_server(hide_secrets(servers.read_entry(server)))
    except SealBroken:
        shown = {"command": server.command, "url": server.url}
    address = {name: shown.get(name) for name in ADDRESS_FIELDS}
    return SettingsOut.model_validate({"refreshIntervalSeconds": server.refresh_interval_seconds, **address})


@transaction.atomic
def _store(caller: Caller, name: str, wanted: ServerFieldsIn) -> ServerOut:
    sent = {field: getattr(wanted, field) for field in wanted.model_fields_set if field != "name"}
    if wanted.tools is not None:
        snapshots.import_snapshots(definitions_by_server={name: wanted.tools}, actor=caller.actor)
    elif _changes_address(sent) or not Server.objects.filter(name=name).exists():
        _store_address(caller, name, sent)
    _store_settings(caller, find_server(name), wanted)
    wake_workers_on_commit()
    return describe_server(rest.read_server(name, policy=None), caller)


def _store_settings(caller: Caller, server: Server, wanted: ServerFieldsIn) -> None:
    actor, seconds = caller.actor, wanted.refreshIntervalSeconds
    if "deferLoading" in wanted.model_fields_set:
        servers.set_defer_loading(server=server, defer_loading=wanted.deferLoading, actor=actor)
    if wanted.enabled is not None:
        server_settings.set_enabled(server=server, enabled=wanted.enabled, actor=actor)
    if seconds is not None:
        servers.set_refresh_interval(server=server, seconds=seconds, actor=actor)


def _changes_address(sent: dict[str, Any]) -> bool:
    return any(sent.get(field) is not None for field in (*ADDRESS_FIELDS, "transport"))


def _store_address(caller: Caller, name: str, sent: dict[str, Any]) -> None:
    """Through the same door as a config file: the same checks, and masked secrets keep their values."""
    entry = _known_entry(name)
    entry |= {field: value for field, value in sent.items() if field in ADDRESS_FIELDS and value is not None}
    if sent.get("transport") is not None:
        entry["type"] = str(sent["transport"])
    if sent.get("command") or sent.get("url"):
        gone = ("url", "headers") if sent.get("command") else ("command", "args", "env")
        entry = {field: value for field, value in entry.items() if field not in gone or field in sent}
    parsed = dialects.parse({"mcpServers": {name: entry}})
    config.import_config(config=parsed, policy_slug=caller.policy.slug, actor=caller.actor)


def _known_entry(name: str) -> dict[str, Any]:
    server = Server.objects.filter(name=name).exclude(transport=Transport.SNAPSHOT).first()
    return render_server(hide_secrets(servers.read_entry(server))) if server else {}
