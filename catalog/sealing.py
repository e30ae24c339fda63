"""Keeps secrets encrypted at rest, each bound to the row it belongs to. Settings parse the keys."""

import base64
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from catalog.domain.errors import ToolSearchError

_KEY = re.compile(r"[A-Za-z0-9_-]{43}=")


class SealBroken(ToolSearchError):
    """A sealed value cannot be decrypted: its key is gone, it was altered, or it belongs to another row."""

    title = "Stored secret cannot be read"


class Sealer:
    """Encrypts with the first key and decrypts with any, so that keys can be rotated."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._fernet = MultiFernet([Fernet(key) for key in keys])

    def seal(self, mapping: Mapping[str, Any], *, context: str) -> str:
        """Encrypt a JSON mapping. `context` names the row and field; only the same context opens it again."""
        text = json.dumps({"context": context, "sealed": dict(mapping)}, separators=(",", ":"))
        return self._fernet.encrypt(text.encode()).decode()

    def unseal(self, token: str, *, context: str) -> dict[str, Any]:
        """Decrypt a mapping. Raises SealBroken, whose message says nothing about the content."""
        try:
            opened = json.loads(self._fernet.decrypt(token))
        except InvalidToken:
            raise SealBroken(
                "A stored secret cannot be opened with the keys given: add the key it was sealed with"
            ) from None
        if opened["context"] != context:
            raise SealBroken("A stored secret belongs to another row: enter it again")
        return dict(opened["sealed"])

    def rotate(self, token: str) -> str:
        """Encrypt again with the newest key. Raises SealBroken as `unseal` does."""
        try:
            return self._fernet.rotate(token).decode()
        except InvalidToken:
            raise SealBroken("A stored secret cannot be opened with the keys given") from None


def parse_keys(text: str) -> tuple[str, ...]:
    """Read Fernet keys separated by commas, newest first. Raises ValueError without showing a key."""
    keys = tuple(key.strip() for key in text.split(","))
    # Fernet itself overlooks what follows a key's end, and a second key must not be lost that way.
    if not all(_KEY.fullmatch(key) for key in keys):
        raise ValueError("is not a Fernet key: 32 random bytes in URL-safe base64")
    return keys


def derive_key(secret: str) -> str:
    """A key derived from a secret, which it does not reveal."""
    return base64.urlsafe_b64encode(_derive(secret, b"toolsearch encryption key")).decode()


def derive_record_key(encryption_key: str) -> bytes:
    """The key that signs the change record."""
    return _derive(encryption_key, b"toolsearch change record")


def _derive(secret: str, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(secret.encode())


def read_key(path: Path) -> str | None:
    """The key in a file, or None where there is no such file. Raises ValueError, which names the file, where
    it holds something else.
    """
    try:
        key = path.read_bytes().decode(errors="replace").strip()
    except FileNotFoundError:
        return None
    if not _KEY.fullmatch(key):
        raise ValueError(f"{path} does not hold the key that was made there: put the file back from a copy")
    return key


def create_key(path: Path) -> bool:
    """Store a new key that only its owner can read, on the disk before this returns. False where a file is
    there already: another process was first, and its key is the key.

    A hard link appears whole or not at all, and never over a file that is there.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(Fernet.generate_key().decode())
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
        _sync_folder(path.parent)
    return True


def _sync_folder(folder: Path) -> None:
    """A new name in a folder is on the disk only once the folder is."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
