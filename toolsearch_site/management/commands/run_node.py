"""`manage.py run_node ROLE…`: one node of several, beside a database server and a broker server."""

import logging
import shutil
import signal
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from toolsearch_site import nodes
from toolsearch_site.parts import NodeRole, index_maker, parts_of
from toolsearch_site.starting import do_without_pool, find_address, refuse_absent_database, refuse_old_tables
from toolsearch_site.static_files import collect_static_files
from toolsearch_site.supervisor import SUPERVISOR, Supervisor, run_to_end

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Run this machine's part of a deployment on several: web, worker, scheduler, or some of them."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("roles", nargs="+", choices=[role.value for role in NodeRole], metavar="ROLE")
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=settings.ENVIRONMENT.port)
        parser.add_argument("--processes", type=int, default=2, help="of the web server; 2 is the default")

    def handle(self, *, roles: list[str], host: str, port: int, processes: int, **options: Any) -> None:
        if settings.EMBEDDED:
            raise CommandError("several nodes need DATABASE_URL and CELERY_BROKER_URL; one runs by `up`")
        do_without_pool()
        chosen = [role for role in NodeRole if role in roles]
        listen_on = find_address(host, port) if NodeRole.WEB in chosen else host
        refuse_absent_database()
        refuse_old_tables()
        self._prepare(chosen)
        connections.close_all()
        parts = parts_of(chosen, host=listen_on, port=port, processes=processes)
        supervisor = Supervisor(parts, say=self._say)
        for sign in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sign, lambda *_: supervisor.stop())
        nodes.tell_until(supervisor.stopping, chosen)
        supervisor.run()

    def _prepare(self, roles: Sequence[NodeRole]) -> None:
        """A web node answers from its own index from its first request on."""
        shutil.rmtree(settings.METRICS_FOLDER, ignore_errors=True)  # of processes that are gone
        if NodeRole.WEB in roles:
            collect_static_files()
            if run_to_end(index_maker(), say=self._say):
                raise CommandError("the search index could not be brought up to date")

    def _say(self, label: str, line: str) -> None:
        """The parts write their records themselves; what the supervisor says becomes one."""
        if label == SUPERVISOR:
            logger.warning("%s", line)
        else:
            self.stdout.write(f"{line}\n", ending="")
            self.stdout.flush()
