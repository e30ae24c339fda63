"""`manage.py run_node ROLE…`: runs one node of several that share a database server and a broker."""

import logging
import shutil
import signal
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from toolsearch_site.cluster import heartbeat
from toolsearch_site.cluster.preflight import (
    add_gateway_port,
    disable_pool,
    find_listening,
    require_data_folder_and_keys,
    require_database,
    require_migrated,
)
from toolsearch_site.cluster.programs import NodeRole, index_maker, is_searched, programs_of
from toolsearch_site.cluster.supervisor import SUPERVISOR, Supervisor, run_to_end
from toolsearch_site.edge.static_files import collect_static_files

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Run this machine's part of a deployment on several: web, gateway, worker, scheduler, or some."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("roles", nargs="+", choices=[role.value for role in NodeRole], metavar="ROLE")
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=settings.ENVIRONMENT.port)
        add_gateway_port(parser)
        parser.add_argument(
            "--processes", type=int, help="of the web server, by default 2, and of the gateway, by default 1"
        )

    def handle(
        self,
        *,
        roles: list[str],
        host: str,
        port: int,
        gateway_port: int | None,
        processes: int | None,
        **options: Any,
    ) -> None:
        if settings.EMBEDDED:
            raise CommandError("several nodes need DATABASE_URL and CELERY_BROKER_URL; one runs by `up`")
        require_data_folder_and_keys()
        disable_pool()
        chosen = [role for role in NodeRole if role in roles]
        listening = find_listening(chosen, host=host, port=port, gateway_port=gateway_port)
        require_database()
        require_migrated()
        self._prepare(chosen)
        connections.close_all()
        programs = programs_of(chosen, listening=listening, processes=processes)
        supervisor = Supervisor(programs, say=self._say)
        for sign in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sign, lambda *_: supervisor.stop())
        heartbeat.run(supervisor.stopping, chosen)
        supervisor.run()

    def _prepare(self, roles: Sequence[NodeRole]) -> None:
        """Builds the index before its servers start, so that their first request is answered from it."""
        shutil.rmtree(settings.METRICS_FOLDER, ignore_errors=True)  # of processes that are gone
        if NodeRole.WEB in roles:
            collect_static_files()
        if is_searched(roles) and run_to_end(index_maker(), say=self._say):
            raise CommandError("the search index could not be brought up to date")

    def _say(self, label: str, line: str) -> None:
        """Logs what the supervisor says; the programs write their own log records."""
        if label == SUPERVISOR:
            logger.warning("%s", line)
        else:
            self.stdout.write(f"{line}\n", ending="")
            self.stdout.flush()
