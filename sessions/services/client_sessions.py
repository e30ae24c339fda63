"""The session that an MCP client's searches are recorded under: one for each key and client."""

import time
import uuid
from collections import OrderedDict
from threading import Lock

from catalog.domain.errors import ToolSearchError
from catalog.models import Policy
from catalog.process_memory import remember
from sessions.services import lifecycle, write_behind

PREFIX = "mcp:"
NAMELESS = "client"
# A session may have ended meanwhile: what is found again after so long is made again.
KEPT_SECONDS = 60.0
MOST_KEPT = 10_000

_known: OrderedDict[tuple[int, str], tuple[float, uuid.UUID]] = OrderedDict()
_lock = Lock()


def _forget() -> None:
    with _lock:
        _known.clear()


remember("sessions of MCP clients", _forget)


def find_client_session(*, key_id: int, policy_id: int, client: str) -> uuid.UUID | None:
    """None where the policy has no room for a session. It counts as seen."""
    key = (key_id, client)
    with _lock:
        at, session_id = _known.get(key, (0.0, None))
    if session_id is None or time.monotonic() - at > KEPT_SECONDS:
        session_id = _make(key_id, policy_id, client)
        if session_id is None:
            return None
        _keep(key, session_id)
    write_behind.enqueue_seen(session_id)
    return session_id


def _make(key_id: int, policy_id: int, client: str) -> uuid.UUID | None:
    try:
        created = lifecycle.create_session(
            key_id=key_id,
            policy=Policy.objects.get(pk=policy_id),
            fields=lifecycle.SessionFields(),
            external_id=f"{PREFIX}{client or NAMELESS}",
        )
    except (ToolSearchError, Policy.DoesNotExist):
        return None
    return created.session.pk


def _keep(key: tuple[int, str], session_id: uuid.UUID) -> None:
    with _lock:
        _known[key] = (time.monotonic(), session_id)
        _known.move_to_end(key)
        while len(_known) > MOST_KEPT:
            _known.popitem(last=False)
