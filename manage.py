#!/usr/bin/env python
"""The operator's entry point: every command of the project starts here."""

import os
import sys
import tempfile

from django.core.management import execute_from_command_line
from django.db import DatabaseError

from toolsearch_site.undumpable import make_undumpable

# These read what they are given and nothing else: they leave no data folder behind where they are called.
PURE_COMMANDS = ("decide", "evaluate")
# What SQLite and PostgreSQL say of a file or page that is not what they wrote.
DAMAGED = ("malformed", "file is not a database", "file is encrypted", "invalid page in block")


def main() -> None:
    make_undumpable()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")
    if sys.argv[1:2] and sys.argv[1] in PURE_COMMANDS:
        with tempfile.TemporaryDirectory(prefix="toolsearch-") as folder:
            os.environ["TOOLSEARCH_DATA"] = folder
            execute_from_command_line(sys.argv)
        return
    try:
        execute_from_command_line(sys.argv)
    except DatabaseError as error:
        if "--traceback" in sys.argv:
            raise
        why = " ".join(str(error).split())
        if any(words in why for words in DAMAGED):
            sys.exit(
                f"toolsearch: the database is damaged ({why}): stop everything, keep the file, and restore"
                " a backup (docs/operations.md)"
            )
        sys.exit(f"toolsearch: the database cannot be used ({why}): has `manage.py migrate` run?")


if __name__ == "__main__":
    main()
