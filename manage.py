#!/usr/bin/env python
"""The operator's entry point: every command of the project starts here."""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolsearch_site.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
