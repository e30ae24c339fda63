"""A PostgreSQL connection that the pool can check without a round trip."""

import select
from typing import Any

import psycopg

IS_ALIVE = ""  # the statement with which the pool asks a connection whether it still works


class PooledConnection(psycopg.Connection[Any]):
    """Answers the pool's check from the socket: an idle socket that is readable has been closed by the
    server.

    Nothing is sent to an idle client, so a request need not query the server first.
    """

    def execute(self, query: Any, *arguments: Any, **options: Any) -> psycopg.Cursor[Any]:
        if query == IS_ALIVE and self._is_quiet():
            return self.cursor()
        return super().execute(query, *arguments, **options)

    def _is_quiet(self) -> bool:
        if self.closed or not hasattr(select, "poll"):  # which Windows has not
            return False
        looking = select.poll()
        looking.register(self.fileno(), select.POLLIN)
        return not looking.poll(0)
