"""Keys of config files: those we know, those that nearly are one of ours, and those of other programs."""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

from catalog.domain.problems import Problems, join_place

MAX_NAMED_KEYS = 20
MAX_KEY_CHARS = 40
_SEPARATORS = re.compile(r"[-_]")


def fold(key: str) -> str:
    """What is left of a key when case, `-` and `_` are dropped."""
    return _SEPARATORS.sub("", key).lower()


def refuse_unknown(keys: Iterable[str], known: Collection[str], place: str, problems: Problems) -> None:
    """Note each key, the first of them, of a section that is all ours and has no such key."""
    for key in [key for key in keys if key not in known][:MAX_NAMED_KEYS]:
        meant = _find_meant([key], known).get(key) or _find_similar(key, known)
        hint = f"; {meant} is" if meant else f": {', '.join(known)} are"
        problems.add(join_place(place, key), f"is not a setting{hint}")


def refuse_misspelt(keys: Iterable[object], known: Collection[str], place: str, problems: Problems) -> None:
    """Note every key that is one of ours but for its spelling; others may be another program's."""
    for key, meant in _find_meant(keys, known).items():
        problems.add(join_place(place, key), f"is not read; was {meant} meant?")


def name_keys(keys: Iterable[object]) -> tuple[str, ...]:
    """The first keys, short enough to be shown."""
    return tuple(str(key)[:MAX_KEY_CHARS] for key in list(keys)[:MAX_NAMED_KEYS])


def _find_meant(keys: Iterable[object], known: Collection[str]) -> dict[str, str]:
    """The known key with the same letters, by each key that is spelt in another way."""
    by_letters: dict[str, str] = {}
    for one in known:  # of two spellings that are ours the first
        by_letters.setdefault(fold(one), one)
    given = [key for key in keys if isinstance(key, str) and key not in known]
    return {key: by_letters[fold(key)] for key in given if fold(key) in by_letters}


def _find_similar(key: str, known: Collection[str]) -> str | None:
    similar = get_close_matches(key, known, n=1) if len(key) <= MAX_KEY_CHARS else []
    return similar[0] if similar else None
