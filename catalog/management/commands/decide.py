"""`manage.py decide FILE`: decides a document without a database, for "policy as code" in a CI."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand

from catalog.domain.decide import Decided, decide
from catalog.domain.document import parse_document
from catalog.domain.errors import InvalidInput
from catalog.domain.json_text import read_json
from catalog.management.inputs import read_input

BAD_DOCUMENT = 2


class Command(BaseCommand):
    help = "Reads a document of policy, servers and session; writes which tools load, which wait, and why."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="the document; - is stdin")
        parser.add_argument("--json", action="store_true", help="write JSON instead of a table")

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            document = parse_document(read_json(read_input(options["file"])))
        except InvalidInput as error:
            self._refuse([str(problem) for problem in error.errors])
        else:
            decided = decide(document.tools, document.policy, document.session)
            lines = [json.dumps(decided.to_mapping(), indent=2)] if options["json"] else _write_table(decided)
            self.stdout.write("\n".join(lines))

    def _refuse(self, mistakes: list[str]) -> None:
        for mistake in mistakes:
            self.stderr.write(_printable(mistake))
        sys.exit(BAD_DOCUMENT)


def _write_table(decided: Decided) -> Iterator[str]:
    measure = decided.measure
    deferred = sum(decision.is_deferred for decision in decided.decisions)
    state = "active" if decided.active else "inactive"
    yield f"Tool search is {state}: {deferred} of {len(decided.decisions)} tools deferred."
    value = "unknown" if measure.value is None else f"{measure.value:,.10g}"
    yield f"{measure.unit}: {value}, limit {measure.limit:,.10g}: {'over' if decided.over else 'not over'}."
    rows = [("DECISION", "REASON", "NAME", "SERVER")]
    rows += [(each.outcome, each.reason, each.name, _printable(each.server)) for each in decided.decisions]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _printable(text: str) -> str:
    """One printable line: a document may contain line breaks and lone surrogates."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
