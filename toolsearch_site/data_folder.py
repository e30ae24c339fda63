"""Makes what an instance keeps in its data folder: the folder, the embedded database's file and the keys.

Importing the settings makes none of it. Whoever first needs one of them does, and a key is on the disk before
anything is signed or sealed with it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from catalog.private_folder import make_private_folder
from catalog.sealing import create_key, read_key
from toolsearch_site.cluster.embedded_database import holds_api_keys, holds_sealed_rows, holds_sign_ins

DATABASE_FILE = "toolsearch.sqlite3"

logger = logging.getLogger(__name__)


class UnusableFolder(SystemExit):
    """Ends the process with one line: without its keys no command and no part of a node goes on."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"toolsearch: {problem}")


@dataclass(frozen=True, slots=True)
class DataFolder:
    path: Path

    @property
    def database_file(self) -> Path:
        return self.path / DATABASE_FILE

    def make(self) -> None:
        """Make the folder, for its owner alone. Raises UnusableFolder where nothing can be written there."""
        probe = self.path / ".writable"
        try:
            make_private_folder(self.path)
            probe.touch()
            probe.unlink(missing_ok=True)
        except OSError as problem:
            raise UnusableFolder(
                f"TOOLSEARCH_DATA: '{self.path}' cannot be used as a folder: {problem.strerror}"
            ) from None

    def create_database_file(self) -> None:
        """Empty and for its owner alone: SQLite's other files get the mode of this one."""
        self.make()
        self.database_file.touch(mode=0o600)

    def read_encryption_key(self) -> str:
        """Made where nothing was sealed yet. Raises UnusableFolder where it is lost."""
        return self._read_key(
            "encryption.key",
            is_needed=holds_sealed_rows,
            loss=(
                "the database holds what was sealed with that key: put the file back, or set"
                " TOOLSEARCH_ENCRYPTION_KEY (docs/operations.md says how to go on without)"
            ),
        )

    def read_secret_key(self) -> str:
        """Made where no agent has a key yet. Raises UnusableFolder where it is lost."""
        had_sign_ins = not (self.path / "secret.key").exists() and holds_sign_ins(self.database_file)
        key = self._read_key(
            "secret.key",
            is_needed=holds_api_keys,
            loss=(
                "agents' keys are stored under it: put the file back, or set SECRET_KEY to a new one, under"
                " which none of those keys is recognised (docs/operations.md)"
            ),
        )
        if had_sign_ins:
            logger.warning("secret.key was missing and has been made anew: everybody has to sign in again")
        return key

    def _read_key(self, name: str, *, is_needed: Callable[[Path], bool], loss: str) -> str:
        path = self.path / name
        try:
            if (key := read_key(path)) is not None:
                return key
            # Asked once more: another process may have made the key, and used it, since.
            if is_needed(self.database_file) and not path.exists():
                raise UnusableFolder(f"{path} is missing, and {loss}")
            self.make()
            create_key(path)
            key = read_key(path)
        except ValueError as problem:
            raise UnusableFolder(str(problem)) from None
        assert key is not None
        return key


def read_keys() -> None:
    """Before the first request or task. Ends the process with one line where a key is lost or garbled."""
    for key in (settings.SECRET_KEY, settings.ENCRYPTION_KEYS):
        bool(key)
