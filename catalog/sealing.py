"""Keeps secrets encrypted at rest. (Settings call `parse_keys` and `read_or_create_key`: keep these two names.)"""

import os
import tempfile
from pathlib import Path

from cryptography.fernet import Fernet


def parse_keys(text: str) -> tuple[str, ...]:
    """Read one or several Fernet keys separated by commas, newest first. Raises ValueError without showing a key."""
    keys = tuple(key.strip() for key in text.split(","))
    for key in keys:
        try:
            Fernet(key)
        except ValueError:
            raise ValueError("is not a Fernet key: 32 random bytes in URL-safe base64") from None
    return keys


def read_or_create_key(path: Path) -> str:
    """The key in a file that only its owner can read; made on first use, by whichever process comes first."""
    if not path.exists():
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w") as file:
            file.write(Fernet.generate_key().decode())
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        os.unlink(temporary)
    return path.read_text().strip()
