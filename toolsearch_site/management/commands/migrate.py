"""`manage.py migrate`: Django's own, which first makes the embedded database's file."""

from typing import Any

from django.conf import settings
from django.core.management.commands import migrate

from toolsearch_site.data_folder import DataFolder


class Command(migrate.Command):
    def execute(self, *args: Any, **options: Any) -> str | None:
        """Before the checks, which ask the database for its limits."""
        only_looks = options["plan"] or options["check_unapplied"]
        if settings.ENVIRONMENT.database is None and not only_looks:
            DataFolder(settings.DATA_FOLDER).create_database_file()
        return super().execute(*args, **options)
