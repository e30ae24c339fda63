"""`manage.py create_key NAME`: prints one new API key, alone on stdout."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.access.actors import COMMAND_LINE
from catalog.domain.errors import ToolSearchError
from catalog.domain.policy import DEFAULT_SLUG
from catalog.models import Policy, Scope
from catalog.services import keys


class Command(BaseCommand):
    help = "Make an API key and print it once; only its hash is kept."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--policy", default=DEFAULT_SLUG, metavar="SLUG")
        parser.add_argument("--admin", action="store_true", help="may change the catalog, policies and keys")

    def handle(self, *, name: str, policy: str, admin: bool, **options: Any) -> None:
        bound_to = Policy.objects.filter(slug=policy).first()
        if bound_to is None:
            raise CommandError(f"there is no policy {policy}")
        scope = Scope.ADMIN if admin else Scope.AGENT
        try:
            made = keys.create_key(name=name, actor=COMMAND_LINE, policy=bound_to, scope=scope)
        except ToolSearchError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(made.text)
