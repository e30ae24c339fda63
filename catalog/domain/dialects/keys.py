"""Keys of config files: known ones, misspelt ones, and those of other programs."""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice

from catalog.domain.problems import Problems, join_place

MAX_NAMED_KEYS = 20
MAX_KEY_CHARS = 40
MAX_COMPARED_KEYS = 1_000
NEAR = 0.85  # `tool_serch` is, `file_search` and `web_search` are not
_SEPARATORS = re.compile(r"[-_]")


def fold_key(key: str) -> str:
    """The key in lower case without `-` and `_`."""
    return _SEPARATORS.sub("", key).lower()


def refuse_unknown(keys: Iterable[str], known: Collection[str], place: str, problems: Problems) -> None:
    """Report unknown keys of a section that is entirely ours."""
    for key in [key for key in keys if key not in known][:MAX_NAMED_KEYS]:
        meant = _find_meant([key], known).get(key) or _find_similar(key, known)
        hint = f"; {meant} is" if meant else f": {', '.join(known)} are"
        problems.add(join_place(place, key), f"is not a setting{hint}")


def refuse_misspelt(keys: Iterable[object], known: Collection[str], place: str, problems: Problems) -> None:
    """Report keys that differ from ours in spelling only; others may be another program's."""
    for key, meant in _find_meant(keys, known).items():
        problems.add(join_place(place, key), f"is not read; was {meant} meant?")


def refuse_near(keys: Collection[object], known: Collection[str], place: str, problems: Problems) -> None:
    """The same, and every key that is a letter or two from one of ours which is not there."""
    refuse_misspelt(keys, known, place, problems)
    missing = {fold_key(one): one for one in known if one not in keys}
    for key in [key for key in islice(keys, MAX_COMPARED_KEYS) if isinstance(key, str) and key not in known]:
        letters = fold_key(key)
        near = get_close_matches(letters, missing, n=1, cutoff=NEAR) if len(key) <= MAX_KEY_CHARS else []
        if near and letters not in missing:
            problems.add(join_place(place, key), f"is not read; was {missing[near[0]]} meant?")


def name_keys(keys: Iterable[object]) -> tuple[str, ...]:
    """The first keys, shortened for a message."""
    return tuple(str(key)[:MAX_KEY_CHARS] for key in list(keys)[:MAX_NAMED_KEYS])


def _find_meant(keys: Iterable[object], known: Collection[str]) -> dict[str, str]:
    """The known key with the same letters, for each key spelt differently."""
    by_letters: dict[str, str] = {}
    for one in known:  # of two spellings that are ours the first
        by_letters.setdefault(fold_key(one), one)
    given = [key for key in keys if isinstance(key, str) and key not in known]
    return {key: by_letters[fold_key(key)] for key in given if fold_key(key) in by_letters}


def _find_similar(key: str, known: Collection[str]) -> str | None:
    similar = get_close_matches(key, known, n=1) if len(key) <= MAX_KEY_CHARS else []
    return similar[0] if similar else None
