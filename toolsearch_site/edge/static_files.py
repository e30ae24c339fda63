"""Collects and compresses static files at a start, unless nothing changed since the last start."""

import hashlib
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.apps import StaticFilesConfig
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from whitenoise.storage import CompressedManifestStaticFilesStorage  # type: ignore[import-untyped]

# How vendored files are built, which no page loads.
RECIPE = ["node_modules", "package*.json", "build.mjs", "entry.js", "README.md", "SHA256SUMS"]
IGNORED = ["CVS", ".*", "*~", *RECIPE]
MANIFEST = "staticfiles.json"
STYLESHEET = "css/console.css"
IMPORT = re.compile(r'^@import "(?P<address>[^"]+)"(?: (?P<medium>\w+))?;$', re.MULTILINE)
IMPORTED_MODULE = (r"""(?P<matched>from\s*"(?P<url>\.{1,2}/[^"]+)")""", 'from "%(url)s"')


class ConsoleStaticFilesConfig(StaticFilesConfig):
    ignore_patterns = IGNORED


class ConsoleStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Collects the stylesheets as one, and lets modules import each other by their hashed names."""

    patterns = (*CompressedManifestStaticFilesStorage.patterns, ("js/*.js", (IMPORTED_MODULE,)))

    def post_process(self, paths: dict[str, Any], dry_run: bool = False, **options: Any) -> Iterator[Any]:
        if STYLESHEET in paths and not dry_run:
            self._bundle_stylesheets(paths)
        yield from super().post_process(paths, dry_run, **options)

    def _bundle_stylesheets(self, paths: dict[str, Any]) -> None:
        """Write what the stylesheet imports in its place. Addresses in it are taken as they stand."""

        def write_out(found: re.Match[str]) -> str:
            part = posixpath.normpath(posixpath.join(posixpath.dirname(STYLESHEET), found["address"]))
            storage, path = paths.pop(part)
            with storage.open(path) as source:
                text: str = source.read().decode()
            self.delete(part)
            return f"@media {found['medium']} {{\n{text}}}\n" if found["medium"] else text

        collected = Path(self.path(STYLESHEET))
        collected.write_text(IMPORT.sub(write_out, collected.read_text()))
        paths[STYLESHEET] = (self, STYLESHEET)


def collect_static_files() -> None:
    """Compares a digest first: compressing takes seconds, reading the files milliseconds."""
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
    """Empty where there is no manifest: then everything is collected again."""
    manifest = root / MANIFEST
    return hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.exists() else ""
