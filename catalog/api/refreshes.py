"""REST calls to request a refresh and to read its result."""

from django.http import HttpRequest
from ninja import Router, Status

from catalog.access.callers import ADMIN_KEY
from catalog.domain.errors import Conflict
from catalog.models import Server
from catalog.models.jobs import JobState
from catalog.request_bodies import NOTHING, NothingIn, Text
from catalog.schemas.refreshes import RefreshOut, RunOut
from catalog.selectors.servers import find_server, last_refresh_job, refresh_history
from catalog.services import refresh
from catalog.tasks import wake_workers_on_commit

router = Router(tags=["servers"], auth=ADMIN_KEY)


@router.post(
    "/servers/{path:name}/refresh",
    operation_id="refresh_server",
    summary="Ask a server for its tools again",
    response={202: RefreshOut},
)
def refresh_server(request: HttpRequest, name: Text, nothing: NothingIn = NOTHING) -> Status[RefreshOut]:
    """A worker does it; read the same address for how it went."""
    server = find_server(name)
    if server.is_snapshot or not server.enabled:
        raise Conflict(f"{name} cannot be refreshed: it is a snapshot or disabled.")
    refresh.request_refresh(server=server)
    wake_workers_on_commit()
    return Status(202, _describe_refresh(server))


@router.get(
    "/servers/{path:name}/refresh",
    operation_id="get_refresh",
    summary="How the last refresh went",
    response=RefreshOut,
)
def get_refresh(request: HttpRequest, name: Text) -> RefreshOut:
    return _describe_refresh(find_server(name))


def _describe_refresh(server: Server) -> RefreshOut:
    job, history = last_refresh_job(server), refresh_history(server)
    return RefreshOut(
        server=server.name,
        state=JobState(job.state) if job else "never",
        attempts=job.attempts if job else 0,
        error=job.error if job else "",
        last_run=RunOut.from_orm(history[0].run) if history else None,
    )
