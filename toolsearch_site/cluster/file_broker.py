"""The embedded broker: kombu's filesystem transport with atomic message files."""

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

from catalog.private_folder import make_private_folder

logger = logging.getLogger(__name__)


class Channel(filesystem.Channel):
    """Writes each message atomically. kombu's own channel creates the file first, and a worker may read it
    empty.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
        for folder in (self.data_folder_in, self.data_folder_out, self.control_folder):
            make_private_folder(Path(folder))

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]
        name = f"{time.monotonic_ns():020}_{uuid.uuid4()}.{queue}"
        folder = Path(self.data_folder_out)
        being_written = folder / f"{name}.new"
        being_written.write_text(dumps(payload))  # type: ignore[no-untyped-call]
        being_written.rename(folder / f"{name}.msg")

    def _get(self, queue: str) -> Any:  # type: ignore[override]
        """Takes the oldest message. kombu's own moves it through a world-writable folder and fails on a
        foreign file.
        """
        for message in self._list_messages(queue):
            text = _take(message)
            try:
                if text is not None:
                    return self._read(text)
            except (ValueError, LookupError, TypeError, AttributeError):  # empty after a power failure
                logger.warning("dropped a message that cannot be read: %s", message.name)
        raise Empty

    def _read(self, text: bytes) -> Any:
        """The payload, after checking that it is a message."""
        payload = loads(text)  # type: ignore[no-untyped-call]
        hash(self.Message(payload, channel=self).delivery_tag)  # type: ignore[no-untyped-call]
        return payload

    def _list_messages(self, queue: str) -> list[Path]:
        """Message files, the oldest first; links, folders and pipes are ignored."""
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
    """None where another worker was faster: only one process succeeds in removing a file."""
    try:
        with message.open("rb") as opened:
            message.unlink()
            return opened.read()
    except FileNotFoundError:
        return None


class FileTransport(filesystem.Transport):
    Channel = Channel
