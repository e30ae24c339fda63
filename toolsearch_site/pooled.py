"""Connections to PostgreSQL as the pool keeps them."""

import select
from typing import Any

import psycopg

IS_ALIVE = ""  # the statement with which the pool asks a connection whether it still works


class PooledConnection(psycopg.Connection[Any]):
    """Answers the pool's question from its own socket.

    Nobody speaks to a client that rests: a server that has ended or was restarted has closed the socket, and
    then there is something to read. So a request need not ask the server first and wait for its answer.
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
