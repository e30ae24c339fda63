"""What tests of sign-ins begin with: a server that wants one, an admin who gives it, and time that passes."""

from collections.abc import Mapping
from datetime import timedelta

from django.utils import timezone

from catalog.access.actors import Actor, actor_of
from catalog.access.roles import Role
from catalog.domain.choices import AuthKind
from catalog.domain.connection import Connection
from catalog.models import Job, OAuthAttempt, OAuthClient, OAuthGrant, RefreshRun, Server
from catalog.models.jobs import JobKind
from catalog.services import connections, jobs, oauth_clients, oauth_rows, refresh, sign_in
from catalog.services.oauth_clients import ClientSettings, WayBack
from catalog.services.oauth_rows import GrantSecrets
from tests.harness.protected_server import ProtectedServer
from tests.harness.rows import make_server, make_user
from tests.harness.sign_in_server import follow

CALLBACK = "http://127.0.0.1:8000/oauth/callback"
WAY_BACK = WayBack(CALLBACK, others=("http://localhost:8000/oauth/callback",))


def add_server(connection: Connection, name: str = "locked") -> Server:
    server = make_server(name=name, transport=connection.transport, url=connection.url)
    connections.write_connection(server, connection)
    server.save()
    return server


def make_admin() -> Actor:
    return actor_of(make_user(Role.ADMIN))


def run_refresh(server: Server) -> RefreshRun:
    """Carry out the job that waits, or one that is asked for now."""
    job = refresh.request_refresh(server=server)
    assert jobs.run_job(
        job_id=job.pk, holder="worker", handlers={JobKind.REFRESH_SERVER: refresh.run_refresh}
    )
    server.refresh_from_db()
    return RefreshRun.objects.get(job=job)


def begin(server: Server, admin: Actor, way_back: WayBack = WAY_BACK) -> tuple[OAuthAttempt, str]:
    """And the address that the admin goes to."""
    attempt = sign_in.begin(server=server, actor=admin, way_back=way_back)
    return attempt, sign_in.find_departure(state_sha256=attempt.state_sha256, actor=admin).url


def go(server: Server, admin: Actor, way_back: WayBack = WAY_BACK) -> dict[str, str]:
    """There; what comes back with the browser."""
    return follow(begin(server, admin, way_back)[1])


def connect(server: Server, admin: Actor) -> OAuthGrant:
    """There and back."""
    return finish(go(server, admin), admin)


def finish(answer: Mapping[str, str], admin: Actor) -> OAuthGrant:
    return grant_of(sign_in.finish(answer=answer, actor=admin))


def give_client(server: Server, place: ProtectedServer, admin: Actor, **values: object) -> OAuthClient:
    """A client of one's own, known to the authorization server as `own` by the same secret or key."""
    given = {
        "kind": AuthKind.OAUTH,
        "issuer": place.signer.issuer,
        "client_id": "own",
        "client_secret": None,
        **values,
    }
    oauth_clients.set_client(server=server, wanted=ClientSettings(**given), actor=admin)  # type: ignore[arg-type]
    return OAuthClient.objects.get(server=server)


def grant_of(server: Server) -> OAuthGrant:
    return OAuthGrant.objects.get(server=server)


def secrets_of(server: Server) -> GrantSecrets:
    return oauth_rows.read_grant(grant_of(server))


def let_expire(server: Server) -> None:
    """As if its token's life were over."""
    ago = timezone.now() - timedelta(hours=2)
    OAuthGrant.objects.filter(server=server).update(
        obtained_at=ago, expires_at=ago + timedelta(hours=1), rest_until=None
    )


def open_jobs(server: Server) -> int:
    return Job.objects.open().filter(kind=JobKind.REFRESH_SERVER, subject=server.pk).count()
