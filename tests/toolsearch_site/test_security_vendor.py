"""What others made and we serve is what was taken from them, byte by byte."""

import hashlib
from pathlib import Path

from django.conf import settings

VENDOR = Path(settings.BASE_DIR) / "static/vendor"


def test_vendored_files_are_those_that_were_taken() -> None:
    """After an update that is meant, in `static/vendor`: sha256sum of the changed file into SHA256SUMS."""
    lines = (VENDOR / "SHA256SUMS").read_text().splitlines()
    taken = {path.removeprefix("./"): digest for digest, path in (line.split("  ") for line in lines)}
    there = {
        str(path.relative_to(VENDOR)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.suffix in {".js", ".css", ".woff2"}
    }
    assert there == taken
