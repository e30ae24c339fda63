"""`manage.py evaluate`: search quality on sets of tools and queries. No database."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.domain.errors import InvalidInput
from catalog.search import evaluation
from catalog.search.ranking import RANKERS
from catalog.search.wordvectors import find_encoder

Row = dict[str, Any]


class Command(BaseCommand):
    help = "Measure search quality: each DIR holds tools.jsonl and queries.jsonl."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dirs", metavar="DIR", nargs="*")
        parser.add_argument("--ranker", metavar="NAME", nargs="+", action="extend", default=[])
        parser.add_argument("--json", action="store_true", help="write JSON instead of a table")

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            folders, rankers = _tell_apart(options["dirs"], options["ranker"])
            rows = list(_evaluate_all(folders, rankers))
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from error
        except InvalidInput as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(rows, indent=2) if options["json"] else _write_table(rows))


def _tell_apart(dirs: Sequence[str], named: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Splits folders from rankers, since the two lists may be given in either order."""
    rankers = [name for name in named if name in RANKERS]
    folders = [Path(name) for name in (*dirs, *(name for name in named if name not in RANKERS))]
    if not folders:
        raise CommandError("name at least one folder with tools.jsonl and queries.jsonl")
    return folders, rankers or list(RANKERS)


def _evaluate_all(folders: Sequence[Path], rankers: Sequence[str]) -> Iterator[Row]:
    encoder = find_encoder()
    for folder in folders:
        quality_set = evaluation.load_set(folder)
        counts = {"tools": len(quality_set.documents), "queries": len(quality_set.questions)}
        for ranker in dict.fromkeys(rankers):
            quality = evaluation.evaluate(quality_set, ranker, encoder)
            yield {"set": quality_set.name, "ranker": ranker, **counts, **quality.to_mapping()}


def _write_table(rows: Sequence[Row]) -> str:
    cells = [list(rows[0]), *([_write_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
    return "\n".join(lines)


def _write_cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
