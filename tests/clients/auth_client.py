"""The client of the conformance suite's sign-in scenarios: this service, its admin, and an agent's call.

`python -m tests.clients.auth_client` works on the instance in TOOLSEARCH_DATA. It writes the port at which it
waits for the suite's commands, which scripts/auth_command.py passes on, and carries each out in a fork, so
that everything is imported once: it adds the server that the suite has started, and refreshes it as a worker
does. Where that wants a sign-in, an admin goes through it; then a tool is called as the gateway does.
"""

import asyncio
import json
import os
import socketserver
import sys
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import django
import httpx2

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")
django.setup()

from django.contrib.auth.models import Group, User  # noqa: E402  the models are ready only now

from catalog.access import actors  # noqa: E402
from catalog.access.roles import Role  # noqa: E402
from catalog.domain.choices import AuthKind, Transport  # noqa: E402
from catalog.domain.connection import SIGN_IN_CODES, FailureCode, UpstreamFailure  # noqa: E402
from catalog.domain.dialects import ServerEntry  # noqa: E402
from catalog.domain.upstream_calls import LeaseHolder, Upstream  # noqa: E402
from catalog.models import Job, OAuthClient, OAuthGrant, Server  # noqa: E402
from catalog.models.jobs import JobKind, JobState  # noqa: E402
from catalog.services import call_targets, connections, grant_renewal, jobs, oauth_clients, servers, sign_in  # noqa: E402
from catalog.tasks import HANDLERS  # noqa: E402
from catalog.upstream import oauth  # noqa: E402
from catalog.upstream.leases import LeasePool  # noqa: E402
from sessions.gateway.signed_in import SignedInRequests  # noqa: E402

CALLBACK = "http://127.0.0.1:8000/oauth/callback"
# By this address the suite knows a client that describes itself. Only these scenarios get it: in others the
# suite would look for the document in vain, and not see how this client registers.
DOCUMENT = "https://conformance-test.local/client-metadata.json"
WITH_DOCUMENT = frozenset({"auth/basic-cimd"})
CLIENT_CREDENTIALS = "auth/client-credentials-"
MORE_SIGN_INS = 2  # in a row, for a server that goes on asking
CALL_SECONDS = 20.0
HTTP_SECONDS = 10.0


@dataclass
class Console:
    """One server of the instance, and the admin who looks after it."""

    server: Server
    admin: actors.Actor
    scenario: str
    sign_ins: int = 0

    def reach(self, own_client: Mapping[str, str]) -> dict[str, Any]:
        """What a tool answers. Raises what the service says where it is not to be had."""
        while True:
            try:
                self._refresh()
                return self._call()
            except UpstreamFailure as failure:
                if failure.code not in SIGN_IN_CODES or self.sign_ins > MORE_SIGN_INS:
                    raise
            if own_client and not self.sign_ins:
                self._set_client(own_client)
            self._sign_in()

    def describe(self) -> dict[str, Any]:
        grant = OAuthGrant.objects.filter(server=self.server).first()
        client = OAuthClient.objects.filter(server=self.server).first()
        return {
            "sign_ins": self.sign_ins,
            "client": client.source if client else "",
            "state": grant.state if grant else "",
            "scopes": grant.granted_scopes if grant else [],
        }

    def _refresh(self) -> None:
        """The refresh that is asked for by now. Raises what the server's page says of it."""
        refreshes = Job.objects.filter(kind=JobKind.REFRESH_SERVER, subject=self.server.pk)
        waiting = refreshes.get(state=JobState.WAITING)
        assert jobs.run_job(job_id=waiting.pk, holder="worker", handlers=HANDLERS)
        self.server.refresh_from_db()
        if self.server.last_error_code:
            raise UpstreamFailure(FailureCode(self.server.last_error_code), self.server.last_error)

    def _call(self) -> dict[str, Any]:
        tool = self.server.tools.values_list("name", flat=True)[0]
        upstream = call_targets.find_upstream(self.server.pk)
        assert upstream is not None
        return asyncio.run(_call(upstream, tool))

    def _set_client(self, given: Mapping[str, str]) -> None:
        """As an admin reads at the provider who issues the client, and pastes what it gives."""
        address = grant_renewal.resolved_address(connections.read_connection(self.server))
        asked = grant_renewal.challenge_of(OAuthGrant.objects.get(server=self.server))
        found = oauth.discover(address, asked, grant_renewal.read_network())
        wanted = oauth_clients.ClientSettings(
            kind=AuthKind.CLIENT_CREDENTIALS if self._needs_nobody else AuthKind.OAUTH,
            issuer=found.issuer,
            client_id=given["client_id"],
            client_secret=given.get("client_secret") or given["private_key_pem"],
        )
        oauth_clients.set_client(server=self.server, wanted=wanted, actor=self.admin)

    @property
    def _needs_nobody(self) -> bool:
        return self.scenario.startswith(CLIENT_CREDENTIALS)

    def _sign_in(self) -> None:
        self.sign_ins += 1
        if self._needs_nobody:
            sign_in.obtain_own_token(server=self.server, actor=self.admin)
            return
        document = DOCUMENT if self.scenario in WITH_DOCUMENT else ""
        way_back = oauth_clients.WayBack(CALLBACK, document=document)
        attempt = sign_in.begin(server=self.server, actor=self.admin, way_back=way_back)
        departure = sign_in.find_departure(state_sha256=attempt.state_sha256, actor=self.admin)
        sign_in.finish(answer=_visit(departure.url), actor=self.admin)


def _visit(url: str) -> dict[str, str]:
    """What the authorization server sends the browser back with."""
    with httpx2.Client(trust_env=False, timeout=HTTP_SECONDS) as browser:
        answer = browser.get(url)
    address, _, query = answer.headers["location"].partition("?")
    assert address == CALLBACK
    return dict(parse_qsl(query))


async def _call(upstream: Upstream, tool: str) -> dict[str, Any]:
    pool = LeasePool()
    requests = SignedInRequests(pool)
    params = {"name": tool, "arguments": {}}
    try:
        return await requests.request(
            upstream, LeaseHolder(key_id=1), "tools/call", params, timeout_seconds=CALL_SECONDS
        )
    finally:
        requests.close()
        await pool.aclose()


def make_console(address: str, scenario: str) -> Console:
    user, _ = User.objects.get_or_create(username="admin")
    user.groups.add(Group.objects.get(name=Role.ADMIN.group))
    admin = actors.actor_of(user)
    entry = ServerEntry(name=scenario.removeprefix("auth/"), transport=Transport.HTTP, url=address)
    return Console(servers.store_entry(entry=entry, actor=admin), admin, scenario)


def carry_out(address: str, scenario: str, own_client: Mapping[str, str]) -> dict[str, Any]:
    """What a tool answered, or why the service went no further."""
    console = make_console(address, scenario)
    told: dict[str, Any]
    try:
        told = {"result": console.reach(own_client)}
    except UpstreamFailure as failure:
        told = {"code": failure.code, "message": failure.message}
    except sign_in.SignInFailed as failure:
        told = {"code": "sign_in_failed", "message": str(failure)}
    return {**console.describe(), **told}


class Command(socketserver.StreamRequestHandler):
    """One line of JSON each way."""

    def handle(self) -> None:
        warnings.simplefilter("error")
        try:
            told = carry_out(**json.loads(self.rfile.readline()))
        except Exception:
            told = {"broken": traceback.format_exc()}
        self.wfile.write(json.dumps(told).encode())


if __name__ == "__main__":
    with socketserver.ForkingTCPServer(("127.0.0.1", 0), Command) as server:
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()
