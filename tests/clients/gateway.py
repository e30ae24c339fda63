"""A running instance whose gateway serves a real server over stdio, and the conformance server over HTTP."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.harness.instance import START_WITHIN_SECONDS, Instance, running_gateway, wait_for
from tests.harness.prepared import prepared
from tests.harness.rest import RestClient
from tests.servers.installed import EVERYTHING, python_server

AGENTS, CONFORMANCE = "agents", "conformance"
TIME = python_server("mcp-server-time")
# What a key of each policy sees. The agents' server of many tools is there to be searched past.
POLICIES: Mapping[str, Mapping[str, object]] = {
    AGENTS: {"visible": ["mcp__time__*", "mcp__everything__*"]},
    CONFORMANCE: {"visible": ["mcp__conformance__*"], "quarantine": "off"},
}


@dataclass(frozen=True, slots=True)
class Gateway:
    instance: Instance
    admin: RestClient
    keys: Mapping[str, str]

    @property
    def url(self) -> str:
        return f"{self.instance.gateway_url}/mcp"


@contextmanager
def gateway_with_servers(folder: Path, conformance_server: str) -> Iterator[Gateway]:
    with running_gateway(prepared(folder), "--no-demo", TOOLSEARCH_PRIVATE_ADDRESSES="on") as instance:
        instance.wait_until_healthy()
        wait_for(instance.is_gateway_alive, within_seconds=START_WITHIN_SECONDS, about=instance)
        admin = RestClient(instance.port, instance.manage("create_key", "boss", "--admin").stdout.strip())
        _add_servers(instance, admin, conformance_server)
        keys = {slug: _create_key(admin, slug, fields) for slug, fields in POLICIES.items()}
        yield Gateway(instance, admin, keys)


def _create_key(admin: RestClient, slug: str, fields: Mapping[str, object]) -> str:
    """A policy, and a key of the same name."""
    admin.post("/policies", {"slug": slug, **fields}, status=201)
    return str(admin.post("/keys", {"name": slug, "policy": slug}, status=201)["key"])


def _add_servers(instance: Instance, admin: RestClient, conformance_server: str) -> None:
    stdio = {"time": TIME, "everything": EVERYTHING}
    servers: dict[str, object] = {
        name: {"command": server.command, "args": list(server.args)} for name, server in stdio.items()
    }
    admin.post("/config", {"mcpServers": {**servers, CONFORMANCE: {"url": conformance_server}}})
    wait_for(lambda: _are_refreshed(admin), within_seconds=60, about=instance)


def _are_refreshed(admin: RestClient) -> bool:
    return all(server["status"] == "ok" for server in admin.get("/servers")["items"])
