"""Reads a command's input: a file, or standard input for `-`."""

import sys
from pathlib import Path

from catalog.domain.errors import InvalidInput

STDIN = "-"


def read_input(file: str) -> bytes:
    """Raises InvalidInput when the file cannot be read."""
    try:
        return sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise InvalidInput.at(file, error.strerror or str(error)) from None
