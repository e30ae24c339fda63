"""Marks in a server's own texts: title, version and instructions."""

from dataclasses import dataclass

from catalog.domain.marking import Mark, mark_server
from catalog.models import Server
from catalog.selectors.review import ReviewFilter, Waiting

MARKED_ROWS = 20
_READ = ("name", "title", "version", "instructions")


@dataclass(frozen=True, slots=True)
class MarkedServer:
    server: Server
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class MarkedServers:
    """The first of them by name; `more` is how many others there are."""

    rows: list[MarkedServer]
    more: int


def marks_of_server(server: Server) -> tuple[Mark, ...]:
    return mark_server(title=server.title, version=server.version, instructions=server.instructions)


def marked_servers(wanted: ReviewFilter) -> MarkedServers:
    """Enabled servers with marks; none where the filter asks for locked, new or changed tools only."""
    if wanted.waiting not in {None, Waiting.MARKED}:
        return MarkedServers([], 0)
    servers = Server.objects.filter(enabled=True).exclude(title="", version="", instructions="")
    if wanted.server:
        servers = servers.filter(name=wanted.server)
    rows = [MarkedServer(server, marks_of_server(server)) for server in servers.only(*_READ)]
    marked = [row for row in rows if row.marks]
    return MarkedServers(marked[:MARKED_ROWS], max(0, len(marked) - MARKED_ROWS))
