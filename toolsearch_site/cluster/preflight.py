"""Checks made before a start, so that a mistake is one line and not a traceback."""

import os
import socket
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import replace

import psycopg
from django.conf import settings
from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.migrations.executor import MigrationExecutor

from toolsearch_site.cluster.programs import Listening, NodeRole
from toolsearch_site.data_folder import DataFolder, read_keys

GATEWAY_PORT_IS_SET_BY = "TOOLSEARCH_GATEWAY_PORT sets its port"


def add_gateway_port(parser: ArgumentParser) -> None:
    """What `find_listening` takes as `gateway_port`."""
    parser.add_argument(
        "--gateway-port",
        type=int,
        default=settings.ENVIRONMENT.gateway_port,
        help="of the MCP gateway; by default the web server's and one",
    )


def find_listening(roles: Sequence[NodeRole], *, host: str, port: int, gateway_port: int | None) -> Listening:
    """Where the servers of these roles listen. Raises CommandError as `find_address`.

    The gateway's port is then in the environment too, for the programs that this one starts: pages name it.
    """
    found = Listening(host, port, port + 1 if gateway_port is None else gateway_port)
    if NodeRole.WEB in roles:
        found = replace(found, host=find_address(host, port))
    if NodeRole.GATEWAY in roles:
        if NodeRole.WEB in roles and port == found.gateway_port:
            raise CommandError(f"MCP gateway: port {port} is the web server's; {GATEWAY_PORT_IS_SET_BY}")
        found = replace(found, host=_find_gateway_address(host, found.gateway_port))
        os.environ["TOOLSEARCH_GATEWAY_PORT"] = str(found.gateway_port)
    return found


def _find_gateway_address(host: str, port: int) -> str:
    try:
        return find_address(host, port)
    except CommandError as problem:
        raise CommandError(f"MCP gateway: {problem}; {GATEWAY_PORT_IS_SET_BY}") from None


def find_address(host: str, port: int) -> str:
    """The numeric address to listen on. Raises CommandError where it is unknown or taken."""
    if not 0 < port < 65536:
        raise CommandError(f"cannot listen on port {port}: ports are numbers from 1 to 65535")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise CommandError(f"cannot listen on {host} port {port}: {error.strerror}") from None
    return str(address[0])


def require_data_folder_and_keys() -> None:
    """Make what is missing of them. Ends the process with one line where something is lost or garbled."""
    DataFolder(settings.DATA_FOLDER).make()
    read_keys()


def disable_pool() -> None:
    """Turn connection pooling off, for a process that uses the database only now and then."""
    connection.settings_dict["OPTIONS"].pop("pool", None)


def require_database() -> None:
    """Connect once without the pool, which would retry for seconds and then not say why it failed."""
    if connection.vendor != "postgresql":
        return
    try:
        psycopg.connect(**connection.get_connection_params()).close()
    except psycopg.Error as error:
        why = str(error).strip().splitlines()[0]
        raise CommandError(f"the database cannot be reached: {why}") from None


def require_migrated() -> None:
    """Raise CommandError where migrations are missing. Nodes start in parallel, so none of them migrates."""
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandError(
            "the database is not up to date; run `manage.py migrate` once, then start the nodes"
        )
