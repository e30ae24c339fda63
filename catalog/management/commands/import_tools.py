"""`manage.py import_tools SERVER FILE`: tool definitions from a file."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.access.actors import COMMAND_LINE
from catalog.domain.choices import Kind
from catalog.domain.errors import ToolSearchError
from catalog.domain.snapshots import parse_snapshot
from catalog.management.inputs import read_input
from catalog.services import derived_state, snapshots

FROM_THE_LINES = "-"


class Command(BaseCommand):
    help = "Load tool definitions: a JSON array, an MCP tools/list result, or JSON lines."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("server", help="the server's name; - when each line names its own")
        parser.add_argument("file", help="the file to read; - for standard input")
        parser.add_argument(
            "--kind",
            choices=[kind.value for kind in Kind],
            help="mcp where not given; a server that is there stays what it is unless this is given",
        )

    def handle(self, *, server: str, file: str, kind: str | None, **options: Any) -> None:
        try:
            found = parse_snapshot(read_input(file), server=None if server == FROM_THE_LINES else server)
            imported = snapshots.import_snapshots(
                definitions_by_server=found, actor=COMMAND_LINE, kind=Kind(kind) if kind else None
            )
        except ToolSearchError as error:
            raise CommandError(str(error)) from None
        derived_state.bring_up_to_date()
        for one in imported:
            self._report(one)

    def _report(self, one: snapshots.Imported) -> None:
        stored = one.stored
        self.stdout.write(
            f"{one.server}: {len(stored.added)} added, {len(stored.changed)} changed,"
            f" {len(stored.gone)} gone, {stored.unchanged_count} unchanged, {len(one.rejected)} rejected"
        )
        for rejected in one.rejected:
            self.stderr.write(f"{one.server}: {rejected.name}: {rejected.why}")
