"""`manage.py verify_changes`: checks the signatures of the change record."""

import dataclasses
import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from catalog.services import change_signatures


class Command(BaseCommand):
    help = "Tell whether the change record is as it was written; ends with 1 when it is not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true")
        parser.add_argument("--after", metavar="SIGNATURE", default="", help="a last signature that you kept")

    def handle(self, **options: Any) -> None:
        checked = change_signatures.verify(after=options["after"].strip())
        if options["json"]:
            self.stdout.write(json.dumps(dataclasses.asdict(checked)))
        else:
            self._report(checked)
        if checked.problems:
            sys.exit(1)

    def _report(self, checked: change_signatures.Verification) -> None:
        for problem in checked.problems:
            self.stdout.write(problem)
        if not checked.problems:
            self.stdout.write(f"{checked.signed:,} changes are as they were recorded")
        self.stdout.write(
            f"{checked.waiting:,} are not signed yet; the last signature is {checked.last or 'none'}"
        )
