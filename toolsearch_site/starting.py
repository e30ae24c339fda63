"""What every start looks at first, so that a mistake is one line and not a traceback."""

import socket

import psycopg
from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.migrations.executor import MigrationExecutor


def find_address(host: str, port: int) -> str:
    """The numeric address to listen on. Refuses one that is unknown or taken."""
    if not 0 < port < 65536:
        raise CommandError(f"--port {port} is not a port number from 1 to 65535")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise CommandError(f"cannot listen on {host} port {port}: {error.strerror}") from None
    return str(address[0])


def do_without_pool() -> None:
    """For a process that asks the database now and then: in between it keeps no connection."""
    connection.settings_dict["OPTIONS"].pop("pool", None)


def refuse_absent_database() -> None:
    """Ask once without the pool, which would try for some seconds and then not say why."""
    if connection.vendor != "postgresql":
        return
    try:
        psycopg.connect(**connection.get_connection_params()).close()
    except psycopg.Error as error:
        why = str(error).strip().splitlines()[0]
        raise CommandError(f"the database cannot be reached: {why}") from None


def refuse_old_tables() -> None:
    """Several nodes start at once, so none of them migrates."""
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandError(
            "the database is not up to date; run `manage.py migrate` once, then start the nodes"
        )
