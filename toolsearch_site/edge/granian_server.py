"""`python -m toolsearch_site.edge.granian_server`: the web server, with limits on clients.

A thread that waits for a slow client does no work, so there are more threads than connections: slow clients
never take a thread from another client. `slow_clients.py` lets few threads work at once, and
`connection_watch.py` closes connections that are too slow.
"""

import argparse
import logging
import os
import resource
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server import Server

APPLICATION = "toolsearch_site.edge.web_process:application"
# Of each process; more of them wait until one of these ends. An idle one, which has no thread, counts too.
CONNECTIONS = 512
# Requests of a process that wait for a place to work. Their threads remain when their clients leave.
WAITING_REQUESTS = 256
# For requests whose clients left while they were worked on or refused.
SPARE_THREADS = 16
HEADER_TIMEOUT_SECONDS = 30  # also how long a connection may be idle between two requests
LARGEST_HEADERS_BYTES = 64 * 1024
# A process that cannot open a file any more accepts no connection ever after: never let it come to that.
FILES = 4096
FILES_A_CONNECTION = 2
NEEDLESS_WARNING = "Configuration allows spawning up to"  # of threads, most of which are idle


def main() -> None:
    options = read_options("granian_server")
    raise_file_limit(FILES)
    connections = count_connections()
    logging.getLogger("_granian").addFilter(lambda record: not record.msg.startswith(NEEDLESS_WARNING))
    serve(
        APPLICATION,
        options,
        interface=Interfaces.WSGI,
        blocking_threads=count_threads(connections),
        backpressure=connections,
    )


def read_options(program: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--processes", type=int, required=True)
    return parser.parse_args()


def serve(application: str, options: argparse.Namespace, **own: Any) -> None:
    """Run granian until it is told to stop, with what the web server and the gateway have in common."""
    # Many threads search at once: helpers of a matrix product would only wait for a processor.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    Server(
        application,
        address=options.host,
        port=options.port,
        workers=options.processes,
        # A connection with many requests at once would have more of them than there are threads.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(
            header_read_timeout=HEADER_TIMEOUT_SECONDS * 1000, max_buffer_size=LARGEST_HEADERS_BYTES
        ),
        websockets=False,
        respawn_failed_workers=True,  # in place of a process of its own that died
        **own,
    ).serve()


def count_connections(most: int = CONNECTIONS, *, files_each: int = FILES_A_CONNECTION) -> int:
    """How many connections a process accepts: fewer where the limit of open files is low."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if soft == resource.RLIM_INFINITY else min(most, soft // files_each)


def count_threads(connections: int) -> int:
    """The most threads that answer requests in a process."""
    return connections + WAITING_REQUESTS + SPARE_THREADS


def raise_file_limit(files: int) -> None:
    """Raise the limit of open files as far as needed and allowed. Child processes inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = files if hard == resource.RLIM_INFINITY else min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    main()
