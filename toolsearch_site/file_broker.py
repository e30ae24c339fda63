"""The embedded broker: kombu's messages as files, each of which is there whole or not at all."""

import fcntl
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps


class Channel(filesystem.Channel):
    """kombu's own opens a file before it writes it: a worker that looks in between ends on an empty one."""

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]
        name = f"{time.monotonic_ns():020}_{uuid.uuid4()}.{queue}"
        folder = Path(self.data_folder_out)
        being_written = folder / f"{name}.new"
        being_written.write_text(dumps(payload))  # type: ignore[no-untyped-call]
        being_written.rename(folder / f"{name}.msg")

    def get_table(self, exchange: str) -> Any:
        with self._hold_tables(fcntl.LOCK_SH):
            return super().get_table(exchange)  # type: ignore[no-untyped-call]

    def _queue_bind(self, *names: str) -> None:
        with self._hold_tables(fcntl.LOCK_EX):
            super()._queue_bind(*names)  # type: ignore[no-untyped-call]

    @contextmanager
    def _hold_tables(self, how: int) -> Iterator[None]:
        with (self.control_folder / "lock").open("w") as held:
            fcntl.flock(held, how)
            yield


class Transport(filesystem.Transport):
    Channel = Channel
