"""`manage.py reindex [--encode-again]`: builds the search index again beside the live one, then switches."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from catalog.services import encoding, reindex


class Command(BaseCommand):
    help = "Build the search index anew from the database, then switch to it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--encode-again",
            action="store_true",
            help="forget the vectors of the encoder in force: a worker then makes them anew",
        )

    def handle(self, **options: Any) -> None:
        if options["encode_again"]:
            encoding.forget_vectors()
        reindex.rebuild()
        self.stdout.write("the search index is built anew")
