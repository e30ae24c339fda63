"""`manage.py up`: everything on one machine in one command, with nothing else to install or start."""

import gc
import ipaddress
import os
import shutil
import signal
import threading
import time
import urllib.request
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connections

from catalog.services import accounts, demo
from toolsearch_site.cluster import heartbeat
from toolsearch_site.cluster.preflight import (
    add_gateway_port,
    disable_pool,
    find_listening,
    require_data_folder_and_keys,
    require_database,
)
from toolsearch_site.cluster.programs import Listening, NodeRole, programs_of
from toolsearch_site.cluster.supervisor import Supervisor
from toolsearch_site.edge.static_files import collect_static_files

READY_WITHIN_SECONDS = 60
LABEL_WIDTH = 9
ROLES = tuple(NodeRole)
WITHOUT_GATEWAY = tuple(role for role in NodeRole if role is not NodeRole.GATEWAY)


class Command(BaseCommand):
    help = "Migrate, load the demo, and run web server, MCP gateway, worker and scheduler until Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=settings.ENVIRONMENT.port)
        parser.add_argument("--no-demo", action="store_true", help="start with an empty catalog")
        add_gateway_port(parser)
        parser.add_argument("--no-gateway", action="store_true", help="leave the MCP gateway out")

    def handle(
        self,
        *,
        host: str,
        port: int,
        gateway_port: int | None,
        no_demo: bool,
        no_gateway: bool,
        **options: Any,
    ) -> None:
        require_data_folder_and_keys()
        roles = WITHOUT_GATEWAY if no_gateway else ROLES
        listening = find_listening(roles, host=host, port=port, gateway_port=gateway_port)
        if ipaddress.ip_address(listening.host).is_loopback:
            os.environ.setdefault("TOOLSEARCH_TLS", "off")
        disable_pool()
        self._prepare(with_demo=not no_demo)
        sign_in = accounts.create_first_admin()
        connections.close_all()
        if sign_in is not None:
            self._say_sign_in(sign_in)
        supervisor = Supervisor(programs_of(roles, listening=listening), say=self._say)
        for sign in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sign, lambda *_: supervisor.stop())
        threading.Thread(target=self._announce, args=(roles, listening), daemon=True).start()
        heartbeat.run(supervisor.stopping, roles)
        supervisor.run()
        self._say("up", "stopped")
        gc.freeze()  # a last search for garbage would only hold up the end

    def _prepare(self, *, with_demo: bool) -> None:
        require_database()
        call_command("migrate", interactive=False, verbosity=0)
        collect_static_files()
        shutil.rmtree(settings.METRICS_FOLDER, ignore_errors=True)  # of processes that are gone
        if with_demo and demo.load_demo():
            self._say("up", "loaded the demo catalog")

    def _announce(self, roles: Sequence[NodeRole], listening: Listening) -> None:
        site = f"http://{_in_url(listening.host)}:{listening.port}"
        gateway = f"http://{_in_url(listening.host)}:{listening.gateway_port}"
        if _wait_until_alive(f"{site}/healthz"):
            self._say("up", f"toolsearch is ready at {site}")
        if NodeRole.GATEWAY in roles and _wait_until_alive(f"{gateway}/healthz"):
            self._say("up", f"MCP gateway at {gateway}/mcp")

    def _say_sign_in(self, sign_in: accounts.FirstSignIn) -> None:
        """Prints the first password before anything else can fail: it is stored nowhere."""
        self._say("up", f"first sign-in: user {sign_in.username}, password {sign_in.password}")
        self._say("up", "change that password after signing in (Account): whoever reads this log knows it")

    def _say(self, label: str, line: str) -> None:
        """One write per line, because several threads share the terminal."""
        self.stdout.write(f"{label:<{LABEL_WIDTH}}| {line}\n", ending="")
        self.stdout.flush()


def _in_url(host: str) -> str:
    if host in {"0.0.0.0", "::"}:  # noqa: S104  an address to show, not to bind
        return "localhost"
    return f"[{host}]" if ":" in host else host


def _wait_until_alive(url: str) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while time.monotonic() < deadline:
        try:
            direct.open(url, timeout=2).close()
        except OSError:
            time.sleep(0.2)
        else:
            return True
    return False
