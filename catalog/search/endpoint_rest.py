"""When an endpoint that failed is asked again, known to all processes of this node by a small file.

A query that meets a failure costs its time limit; those after it rest, whichever process they come to.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

from catalog.private_folder import make_private_folder

REST_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class LastFailure:
    """`at` is in seconds since 1970; 0 where there was none. `count` is of all failures so far."""

    at: float = 0.0
    problem: str = ""
    count: int = 0


class EndpointRest:
    """Where `file` is None, this process alone knows."""

    def __init__(self, file: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._file, self._clock = file, clock
        self._lock = Lock()
        self._known, self._stamp = LastFailure(), 0

    def is_resting(self) -> bool:
        """False too where the failure is in the future: a clock was set back."""
        return 0 <= self._clock() - self.read().at < REST_SECONDS

    def read(self) -> LastFailure:
        """Costs one `stat` while nothing has changed."""
        if self._file is None:
            return self._known
        try:
            stamp = os.stat(self._file).st_mtime_ns
            if stamp != self._stamp:
                self._known, self._stamp = LastFailure(**json.loads(self._file.read_bytes())), stamp
        except (OSError, ValueError, TypeError):
            return self._known if self._stamp == 0 else LastFailure()
        return self._known

    def begin(self, problem: str) -> None:
        """Rest from now on."""
        with self._lock:
            failure = LastFailure(at=self._clock(), problem=problem, count=self.read().count + 1)
            self._known = failure
            if self._file is not None:
                self._write(self._file, failure)

    def _write(self, file: Path, failure: LastFailure) -> None:
        """Where the disk takes nothing, this process rests alone."""
        temporary = file.with_name(f"{file.name}.{os.getpid()}.new")
        try:
            make_private_folder(file.parent)
            temporary.write_text(json.dumps(asdict(failure)))
            temporary.replace(file)
            self._stamp = os.stat(file).st_mtime_ns
        except OSError:
            self._file = None
