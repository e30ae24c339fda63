"""Folders that only their owner can look into."""

from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """Make it and whatever is missing above it; `mkdir(parents=True)` would leave those open to others."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
