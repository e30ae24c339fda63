"""The embedded broker: kombu's messages as files, each of which is there whole or not at all."""

import fcntl
import logging
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

logger = logging.getLogger(__name__)


class Channel(filesystem.Channel):
    """kombu's own opens a file before it writes it: a worker that looks in between ends on an empty one."""

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]
        name = f"{time.monotonic_ns():020}_{uuid.uuid4()}.{queue}"
        folder = Path(self.data_folder_out)
        being_written = folder / f"{name}.new"
        being_written.write_text(dumps(payload))  # type: ignore[no-untyped-call]
        being_written.rename(folder / f"{name}.msg")

    def _get(self, queue: str) -> Any:  # type: ignore[override]
        """kombu's own goes through a folder that all users share, and ends on a file that is no message."""
        for message in self._list_messages(queue):
            text = _take(message)
            try:
                if text is not None:
                    return self._read(text)
            except (ValueError, LookupError, TypeError, AttributeError):  # empty after a power failure
                logger.warning("dropped a message that cannot be read: %s", message.name)
        raise Empty

    def _read(self, text: bytes) -> Any:
        """The payload, once it is known that a message can be made of it."""
        payload = loads(text)  # type: ignore[no-untyped-call]
        hash(self.Message(payload, channel=self).delivery_tag)  # type: ignore[no-untyped-call]
        return payload

    def _list_messages(self, queue: str) -> list[Path]:
        """The oldest first. Links, folders and pipes are nobody's messages."""
        with os.scandir(self.data_folder_in) as entries:
            files = [entry.path for entry in entries if entry.is_file(follow_symlinks=False)]
        paths = [Path(file) for file in sorted(files)]
        return [path for path in paths if path.name.partition(".")[2] == f"{queue}.msg"]

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


def _take(message: Path) -> bytes | None:
    """None where another worker was faster: of all who remove a file, one succeeds."""
    try:
        with message.open("rb") as opened:
            message.unlink()
            return opened.read()
    except FileNotFoundError:
        return None


class Transport(filesystem.Transport):
    Channel = Channel
