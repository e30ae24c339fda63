"""A log record is one line, whatever a server or a user put into it."""

import logging
import sys

from toolsearch_site.logs import OneLineFormatter


def test_control_characters_cannot_forge_a_record() -> None:
    formatter = OneLineFormatter("{levelname} {message}", style="{")
    record = logging.LogRecord(
        "catalog", logging.INFO, __file__, 1, "tool %s", ("a\n12:00 ERROR forged\x1b[31m\r",), None
    )
    assert formatter.format(record) == "INFO tool a\\n12:00 ERROR forged\\x1b[31m\\r"


def test_exception_text_cannot_forge_a_record() -> None:
    formatter = OneLineFormatter("{levelname} {message}", style="{")
    try:
        raise ValueError("bad\n12:00 ERROR forged")
    except ValueError:
        record = logging.LogRecord("catalog", logging.ERROR, __file__, 1, "failed", (), sys.exc_info())
    first, *rest = formatter.format(record).splitlines()
    assert first == "ERROR failed"
    assert all(line.startswith("    ") for line in rest)
