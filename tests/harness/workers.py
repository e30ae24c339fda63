"""Gives each pytest worker its own data folders, ports and Redis databases."""

import atexit
import itertools
import os
import shutil
import socket
import tempfile
from pathlib import Path

WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))

# Below the ports that the kernel gives to outgoing connections: nobody takes one between look and use.
FIRST_PORT, PORTS_EACH = 20_000, 500
REDIS_DATABASES = 16

_turns = itertools.count(os.getpid())
_numbers = itertools.count()


def find_data_folder() -> Path:
    """Given, or made now and removed with this process; of several workers each has its own part of it."""
    if "TOOLSEARCH_DATA" not in os.environ:
        made = tempfile.mkdtemp(prefix="toolsearch-tests-")
        atexit.register(_remove_folder, made, os.getpid())
        return Path(made)
    given, worker = Path(os.environ["TOOLSEARCH_DATA"]), os.environ.get("PYTEST_XDIST_WORKER", "")
    return given if given.name == worker else given / worker


def find_shared_folder() -> Path:
    """What all workers of a run have in common: removed with the run, unless it was given."""
    own, worker = Path(os.environ["TOOLSEARCH_DATA"]), os.environ.get("PYTEST_XDIST_WORKER", "")
    return own.parent if worker and own.name == worker else own


def _remove_folder(folder: str, maker_pid: int) -> None:
    """Not where a process that was forked from the maker ends."""
    if os.getpid() == maker_pid:
        shutil.rmtree(folder, ignore_errors=True)


def find_free_port() -> int:
    """A port of this worker's range. Turns begin elsewhere in every process, for runs side by side."""
    for turn in itertools.islice(_turns, PORTS_EACH):
        port = FIRST_PORT + WORKER % 24 * PORTS_EACH + turn % PORTS_EACH
        if _is_free(port):
            return port
    raise RuntimeError("every port of this worker is taken")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def next_redis_database() -> int:
    """Two instances on one database would take each other's messages."""
    each = max(1, REDIS_DATABASES // WORKERS)
    return (WORKER * each + next(_numbers) % each) % REDIS_DATABASES
