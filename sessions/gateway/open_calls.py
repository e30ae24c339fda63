"""How many calls of each key are open in this process."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from catalog.domain.errors import ToolSearchError
from catalog.domain.limits import GATEWAY_OPEN_CALLS

RETRY_AFTER_SECONDS = 1


class TooManyOpenCalls(ToolSearchError):
    """A key has as many calls open as it may."""

    status: ClassVar[int] = 429
    title: ClassVar[str] = "Too many open calls"

    def __init__(self) -> None:
        super().__init__(f"{GATEWAY_OPEN_CALLS} calls of this key are open: wait until one has ended.")
        self.retry_after_seconds = RETRY_AFTER_SECONDS


class OpenCalls:
    def __init__(self) -> None:
        self._of_key: Counter[int] = Counter()

    @property
    def count(self) -> int:
        return self._of_key.total()

    @contextmanager
    def counted(self, key_id: int) -> Iterator[None]:
        """Around a call. Raises TooManyOpenCalls."""
        if self._of_key[key_id] >= GATEWAY_OPEN_CALLS:
            raise TooManyOpenCalls
        self._of_key[key_id] += 1
        try:
            yield
        finally:
            self._of_key[key_id] -= 1
            if not self._of_key[key_id]:
                del self._of_key[key_id]
