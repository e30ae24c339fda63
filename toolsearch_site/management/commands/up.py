"""`manage.py up`: web, worker and scheduler as one program, with nothing else to install or start."""

import ipaddress
import os
import signal
import socket
import sys
import threading
import time
import urllib.request
from argparse import ArgumentParser
from typing import Any

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, connections

from catalog.services import accounts, demo
from toolsearch_site.supervisor import Part, Supervisor

READY_WITHIN_SECONDS = 60
LABEL_WIDTH = 9


class Command(BaseCommand):
    help = "Migrate, load the demo, and run the web server, a worker and the scheduler until Ctrl-C."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=settings.ENVIRONMENT.port)
        parser.add_argument("--no-demo", action="store_true", help="start with an empty catalog")

    def handle(self, *, host: str, port: int, no_demo: bool, **options: Any) -> None:
        listen_on = _find_address(host, port)
        if ipaddress.ip_address(listen_on).is_loopback:
            os.environ.setdefault("TOOLSEARCH_TLS", "off")
        self._prepare(with_demo=not no_demo)
        sign_in = accounts.create_first_admin()
        connections.close_all()
        address = f"http://{_in_url(listen_on)}:{port}"
        if sign_in is not None:
            self._say_sign_in(sign_in)
        supervisor = Supervisor(_parts(listen_on, port), say=self._say)
        for sign in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sign, lambda *_: supervisor.stop())
        threading.Thread(target=self._announce, args=(address, sign_in), daemon=True).start()
        supervisor.run()
        self._say("up", "stopped")

    def _prepare(self, *, with_demo: bool) -> None:
        _refuse_absent_database()
        call_command("migrate", interactive=False, verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        if with_demo and demo.load_demo():
            self._say("up", "loaded the demo catalog")

    def _announce(self, address: str, sign_in: accounts.SignIn | None) -> None:
        if not _wait_until_alive(f"{address}/healthz"):
            return
        self._say("up", f"toolsearch is ready at {address}")
        if sign_in is not None:
            self._say_sign_in(sign_in)

    def _say_sign_in(self, sign_in: accounts.SignIn) -> None:
        self._say(
            "up", f"first sign-in: user {sign_in.username}, password {sign_in.password} (change it after)"
        )

    def _say(self, label: str, line: str) -> None:
        """One write per line: several threads share the terminal."""
        self.stdout.write(f"{label:<{LABEL_WIDTH}}| {line}\n", ending="")
        self.stdout.flush()


def _parts(host: str, port: int) -> list[Part]:
    celery = (sys.executable, "-m", "celery", "--app", "toolsearch_site", "--quiet")
    granian = (sys.executable, "-m", "granian", "toolsearch_site.wsgi:application", "--interface", "wsgi")
    listen = ("--host", host, "--port", str(port), "--workers", "2", "--blocking-threads", "4", "--no-ws")
    # SIGTERM lets the web server take its own worker processes with it.
    return [
        Part("web", (*granian, *listen), orphan_signal=signal.SIGTERM),
        Part("worker", (*celery, *_worker(queue="celery", threads=4))),
        Part("refresher", (*celery, *_worker(queue=settings.REFRESH_QUEUE, threads=8))),
        Part("scheduler", (*celery, "beat", "--pidfile", "")),
    ]


def _worker(*, queue: str, threads: int) -> tuple[str, ...]:
    pool = ("worker", "--queues", queue, "--hostname", f"{queue}@%h", "--pool", "threads")
    quiet = ("--loglevel", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat")
    return (*pool, "--concurrency", str(threads), *quiet)


def _find_address(host: str, port: int) -> str:
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


def _refuse_absent_database() -> None:
    """Ask once without the pool, which would try for ten seconds and then not say why."""
    if connection.vendor != "postgresql":
        return
    try:
        psycopg.connect(**{**connection.get_connection_params(), "connect_timeout": 5}).close()
    except psycopg.Error as error:
        why = str(error).strip().splitlines()[0]
        raise CommandError(f"the database cannot be reached: {why}") from None


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
