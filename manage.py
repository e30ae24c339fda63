#!/usr/bin/env python
"""The operator's entry point: every command of the project starts here."""

import os
import sys
import tempfile

from django.core.management import execute_from_command_line
from django.db import DatabaseError

# These read what they are given and nothing else: they leave no data folder behind where they are called.
PURE_COMMANDS = ("decide", "evaluate")


def main() -> None:
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
        sys.exit(f"toolsearch: the database cannot be used ({why}): has `manage.py migrate` run?")


if __name__ == "__main__":
    main()
