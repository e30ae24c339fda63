"""`manage.py backup FILE`: the whole instance in one file, taken while it runs."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.access.actors import COMMAND_LINE
from catalog.services.backup import taking


class Command(BaseCommand):
    help = "Write a backup: consistent while the instance runs, secrets encrypted, their key not included."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="the file to write; one that is there is replaced")

    def handle(self, *, file: Path, **options: Any) -> None:
        try:
            taken = taking.take_backup(file=file, actor=COMMAND_LINE)
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}") from None
        size_mb = taken.packed_bytes / 1e6
        self.stdout.write(f"{file}: {taken.rows:,} rows of {taken.tables} tables, {size_mb:,.1f} MB")
