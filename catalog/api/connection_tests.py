"""The REST call that tests a connection before it is saved."""

import threading
from typing import Any

from django.http import HttpRequest
from ninja import Router

from catalog.access.callers import ADMIN_KEY, caller_of
from catalog.api.servers import parse_address
from catalog.domain.errors import Conflict, InvalidInput, NotFound, Unavailable
from catalog.models import Server
from catalog.request_bodies import Text
from catalog.schemas.servers import ServerPatchIn, TestOut
from catalog.selectors.servers import at_address
from catalog.services import config, connection_tests
from catalog.tasks import wake_workers_on_commit

router = Router(tags=["servers"], auth=ADMIN_KEY)

# Of a web process. Each waits for up to 30 seconds in a thread that pages and agents need too.
WAITING_AT_ONCE = 2
_places = threading.BoundedSemaphore(WAITING_AT_ONCE)


@router.post(
    "/servers/{path:name}/test",
    operation_id="test_server",
    summary="Test a connection",
    response=TestOut,
)
def test_server(request: HttpRequest, name: Text, wanted: ServerPatchIn) -> TestOut:
    """Asks the server with the body over what is stored, as PATCH would write it; `{}` tests what is stored.

    For a name that is not there yet the body has to be complete. A worker asks within 30 seconds, one test at
    a time for each key. Nothing is changed.
    """
    caller = caller_of(request)
    known = Server.objects.filter(at_address(name)).first()
    parsed, left_out = parse_address(known.name if known else name, _read_sent(wanted, name, known))
    entry = config.merge_server(given=parsed.servers[0], actor=caller.actor, left_out=left_out)
    if not _places.acquire(blocking=False):
        raise Unavailable("Other tests are under way: try again in a moment.")
    try:
        job = connection_tests.request_test(entry=entry, actor=caller.actor, caller=-caller.key_id)
        wake_workers_on_commit()
        found = connection_tests.wait_for_result(job)
    finally:
        _places.release()
    return TestOut(
        ok=found.ok, tools=found.tools, took_ms=found.took_ms, error=found.error, names=list(found.names)
    )


def _read_sent(wanted: ServerPatchIn, name: str, known: Server | None) -> dict[str, Any]:
    sent = wanted.given()
    if sent.get("tools") is not None:
        raise InvalidInput.at("tools", "cannot be tested: a snapshot has no server to ask")
    has_address = bool(sent.get("command") or sent.get("url"))
    if known is None and not has_address:
        raise NotFound(f"There is no server named {name}.")
    if known is not None and known.is_snapshot and not has_address:
        raise Conflict(f"{known.name} is a snapshot: there is no server to ask.")
    return sent
