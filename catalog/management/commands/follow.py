"""`manage.py follow [--once]`: keeps this node's search index up to date."""

import signal
from argparse import ArgumentParser
from threading import Event
from typing import Any

from django.core.management.base import BaseCommand

from catalog.services import index_follower


class Command(BaseCommand):
    help = "Keep this node's search index up to date with the catalog until stopped."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--every", type=float, default=index_follower.LOOK_EVERY_SECONDS, help="seconds between two looks"
        )
        parser.add_argument("--once", action="store_true", help="catch up and end")

    def handle(self, *, every: float, once: bool, **options: Any) -> None:
        if once:
            index_follower.Follower().catch_up()
            return
        stop = Event()
        for sign in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sign, lambda *_: stop.set())
        index_follower.follow(stop, every_seconds=every)
