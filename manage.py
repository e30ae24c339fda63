#!/usr/bin/env python
"""The operator's entry point: every command of the project starts here."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import DatabaseError

from toolsearch_site.cluster.undumpable import make_undumpable

# What SQLite and PostgreSQL say of a file or page that is not what they wrote.
DAMAGED = ("malformed", "file is not a database", "file is encrypted", "invalid page in block")
DAMAGED_STATES = ("XX001", "XX002")  # PostgreSQL's data_corrupted and index_corrupted, in whatever language

ABSENT = "unable to open database file"  # of SQLite, whose file only `migrate` makes


def main() -> None:
    make_undumpable()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")
    try:
        execute_from_command_line(sys.argv)
    except DatabaseError as error:
        if "--traceback" in sys.argv:
            raise
        why = " ".join(str(error).split())
        if getattr(error.__cause__, "sqlstate", None) in DAMAGED_STATES or any(one in why for one in DAMAGED):
            sys.exit(
                f"toolsearch: the database is damaged ({why}): stop everything, keep the file, and restore"
                " a backup (docs/operations.md)"
            )
        if ABSENT in why:
            sys.exit(f"toolsearch: the database cannot be used ({why}): run `manage.py migrate` first")
        sys.exit(f"toolsearch: the database cannot be used ({why}): has `manage.py migrate` run?")


if __name__ == "__main__":
    main()
