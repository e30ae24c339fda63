"""When each key was last used: noted by every request, written behind, at most once a minute."""

import time
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from catalog.models import ApiKey
from catalog.process_memory import remember
from catalog.write_behind import WriteBehindBuffer

WRITE_EVERY_SECONDS = 60.0


class KeyUseBuffer(WriteBehindBuffer[dict[int, datetime]]):
    """Key ids with the time of their use."""

    def __init__(self) -> None:
        super().__init__("last uses of keys")
        self._enqueued_at: dict[int, float] = {}

    def enqueue(self, key_id: int) -> None:
        """Most calls end at the first lines, which take no lock: every request comes here."""
        now = time.monotonic()
        last = self._enqueued_at.get(key_id)
        if last is not None and now - last < WRITE_EVERY_SECONDS:
            return
        with self._lock:
            self._enqueued_at[key_id] = now
            self._batch[key_id] = timezone.now()
            self._start_timer()

    def clear(self) -> None:
        super().clear()
        self._enqueued_at.clear()

    def _make_batch(self) -> dict[int, datetime]:
        return {}

    def _write(self, batch: dict[int, datetime]) -> None:
        with transaction.atomic():
            for key_id, at in sorted(batch.items()):  # in one order by all processes
                ApiKey.objects.filter(pk=key_id).update(last_used_at=at)

    def _merge(self, unwritten: dict[int, datetime], later: dict[int, datetime]) -> dict[int, datetime]:
        return unwritten | later


_buffer = KeyUseBuffer()
enqueue = _buffer.enqueue
flush = _buffer.flush
forget = _buffer.clear

remember("last uses of keys", forget)
