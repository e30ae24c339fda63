"""When each key was last used, by whom and for what: noted by every request, written behind, at most once a
minute.
"""

import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction
from django.utils import timezone

from catalog.models import ApiKey
from catalog.models.keys import MAX_CALL_CHARS, MAX_CLIENT_CHARS
from catalog.process_memory import remember
from catalog.write_behind import WriteBehindBuffer

WRITE_EVERY_SECONDS = 60.0
API_PREFIX = "/api/v1"
# A session's id names nothing to a reader; other parts of a path do.
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}", re.IGNORECASE)


class KeyUse(NamedTuple):
    at: datetime
    client: str
    call: str


class KeyUseBuffer(WriteBehindBuffer[dict[int, KeyUse]]):
    """The last use of each key, by its id."""

    def __init__(self) -> None:
        super().__init__("last uses of keys")
        self._enqueued_at: dict[int, float] = {}

    def enqueue(self, key_id: int, environ: Mapping[str, Any]) -> None:
        """Most calls end at the first lines, which take no lock: every request comes here."""
        now = time.monotonic()
        last = self._enqueued_at.get(key_id)
        if last is not None and now - last < WRITE_EVERY_SECONDS:
            return
        use = KeyUse(timezone.now(), read_client(environ), read_call(environ))
        with self._lock:
            self._enqueued_at[key_id] = now
            self._batch[key_id] = use
            self._start_timer()

    def clear(self) -> None:
        super().clear()
        self._enqueued_at.clear()

    def _make_batch(self) -> dict[int, KeyUse]:
        return {}

    def _write(self, batch: dict[int, KeyUse]) -> None:
        with transaction.atomic():
            for key_id, use in sorted(batch.items()):  # in one order by all processes
                ApiKey.objects.filter(pk=key_id).update(
                    last_used_at=use.at, last_client=use.client, last_call=use.call
                )

    def _merge(self, unwritten: dict[int, KeyUse], later: dict[int, KeyUse]) -> dict[int, KeyUse]:
        return unwritten | later


def read_client(environ: Mapping[str, Any]) -> str:
    """How the program names itself: its User-Agent up to the remarks in brackets."""
    named = str(environ.get("HTTP_USER_AGENT", "")).partition("(")[0]
    return keep_printable(named[:MAX_CLIENT_CHARS])


def read_call(environ: Mapping[str, Any]) -> str:
    """Method and path below the API's address, without ids and query."""
    path = str(environ.get("PATH_INFO", "")).removeprefix(API_PREFIX)
    call = f"{environ.get('REQUEST_METHOD', '')} {_ID.sub('…', path)}"
    return keep_printable(call[:MAX_CALL_CHARS])


def keep_printable(text: str) -> str:
    """Without surrogates and control characters, which a database may refuse."""
    return "".join(one for one in text if one.isprintable()).strip()


_buffer = KeyUseBuffer()
enqueue = _buffer.enqueue
flush = _buffer.flush
forget = _buffer.clear

remember("last uses of keys", forget)
