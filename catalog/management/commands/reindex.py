"""`manage.py reindex`: builds the search index again beside the live one, then switches."""

from typing import Any

from django.core.management.base import BaseCommand

from catalog.services import reindex


class Command(BaseCommand):
    help = "Build the search index anew from the database, then switch to it."

    def handle(self, **options: Any) -> None:
        reindex.rebuild()
        self.stdout.write("the search index is built anew")
