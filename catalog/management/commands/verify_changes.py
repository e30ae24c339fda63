"""`manage.py verify_changes`: whether the change record is as it was written."""

import dataclasses
import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from catalog.services import change_seals


class Command(BaseCommand):
    help = "Tell whether the change record is as it was written; ends with 1 when it is not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true")
        parser.add_argument("--after", metavar="SEAL", default="", help="a last seal that you kept")

    def handle(self, **options: Any) -> None:
        verdict = change_seals.verify(after=options["after"].strip())
        if options["json"]:
            self.stdout.write(json.dumps(dataclasses.asdict(verdict)))
        else:
            self._report(verdict)
        if verdict.problems:
            sys.exit(1)

    def _report(self, verdict: change_seals.Verdict) -> None:
        for problem in verdict.problems:
            self.stdout.write(problem)
        if not verdict.problems:
            self.stdout.write(f"{verdict.sealed:,} changes are as they were recorded")
        self.stdout.write(
            f"{verdict.waiting:,} wait for their seal; the last seal is {verdict.last or 'none'}"
        )
