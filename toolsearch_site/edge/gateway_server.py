"""`python -m toolsearch_site.edge.gateway_server`: the server of the gateway, on a port of its own.

Its connections are streams that stay open for as long as a call or a client: they cost no thread, and each
counts as a request under way until it ends.
"""

from granian.constants import Interfaces

from toolsearch_site.edge.granian_server import count_connections, raise_file_limit, read_options, serve

APPLICATION = "toolsearch_site.gateway:application"
# Of each process, open streams among them; more of them wait until one of these ends.
STREAMS = 4096
# Its own, and what its call opens to a server: a connection, or the pipes of a program.
FILES_A_STREAM = 4
FILES = STREAMS * FILES_A_STREAM
# A stream would keep its process from stopping. The supervisor waits for five seconds, then kills.
STOP_WITHIN_SECONDS = 3


def main() -> None:
    options = read_options("gateway_server")
    raise_file_limit(FILES)
    serve(
        APPLICATION,
        options,
        interface=Interfaces.ASGI,
        backpressure=count_connections(STREAMS, files_each=FILES_A_STREAM),
        workers_kill_timeout=STOP_WITHIN_SECONDS,
    )


if __name__ == "__main__":
    main()
