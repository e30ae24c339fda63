"""Collects and compresses the static files at a start, unless the last start collected the same."""

import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

IGNORED = ["CVS", ".*", "*~"]  # as the command itself does
MANIFEST = "staticfiles.json"


def collect_static_files() -> None:
    """Compressing takes seconds; reading what would be compressed takes a few milliseconds."""
    root = Path(settings.STATIC_ROOT)
    stamp = root.with_suffix(".collected")
    wanted = _digest_sources()
    if stamp.exists() and stamp.read_text() == wanted + _digest_manifest(root):
        return
    stamp.unlink(missing_ok=True)
    # Clear first: the command keeps what was collected after a file's own date, also from another version.
    call_command("collectstatic", clear=True, interactive=False, verbosity=0)
    if (root / MANIFEST).exists():
        stamp.write_text(wanted + _digest_manifest(root))


def _digest_sources() -> str:
    digest = hashlib.sha256()
    found = (one for finder in get_finders() for one in finder.list(IGNORED))
    for path, storage in found:
        with storage.open(path) as source:
            digest.update(f"{path} {source.size}\n".encode())
            digest.update(source.read())
    return digest.hexdigest()


def _digest_manifest(root: Path) -> str:
    """Empty without one: a folder that was taken away, or a storage that writes none, is collected again."""
    manifest = root / MANIFEST
    return hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.exists() else ""
