"""`manage.py export_config`: the catalog's servers and a policy as a config file."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.access.actors import COMMAND_LINE
from catalog.domain.dialects import Dialect
from catalog.domain.errors import ToolSearchError
from catalog.domain.policy import DEFAULT_SLUG
from catalog.services import config


class Command(BaseCommand):
    help = "Print the servers and search settings; secrets are left out unless asked for."

    def add_arguments(self, parser: ArgumentParser) -> None:
        choices = [dialect.value for dialect in Dialect]
        parser.add_argument("--dialect", choices=choices, default=Dialect.PIZZAPI.value)
        parser.add_argument("--policy", default=DEFAULT_SLUG, metavar="SLUG")
        parser.add_argument(
            "--secrets", action="store_true", help="include secret values; keep the file safe"
        )

    def handle(self, *, dialect: str, policy: str, secrets: bool, **options: Any) -> None:
        try:
            rendered = config.export_config(
                dialect=Dialect(dialect), policy_slug=policy, actor=COMMAND_LINE, secrets=secrets
            )
        except ToolSearchError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(json.dumps(rendered.document, indent=2, ensure_ascii=False))
        if rendered.left_out:
            self.stderr.write(f"{dialect} cannot say: {', '.join(rendered.left_out)}")
