"""`manage.py restore FILE`: restores a backup into an empty instance."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.access.actors import COMMAND_LINE
from catalog.domain.errors import ToolSearchError
from catalog.services.backup import restoring


class Command(BaseCommand):
    help = "Fill an empty, migrated instance from a backup: all of it, or nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a file that `manage.py backup` wrote")

    def handle(self, *, file: Path, **options: Any) -> None:
        try:
            restored = restoring.restore_backup(file=file, actor=COMMAND_LINE)
        except ToolSearchError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{restored.rows:,} rows are back, as they were at {restored.made_at}")
        if restored.locked_servers:
            names = ", ".join(restored.locked_servers)
            self.stderr.write(
                f"set TOOLSEARCH_ENCRYPTION_KEY as it was: it does not open the secrets of {names}"
            )
        if not restored.keys_are_valid:
            self.stderr.write("API keys do not work: SECRET_KEY is not the one they were made under")
