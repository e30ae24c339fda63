"""Which scripts an encoder's vocabulary knows, and how much of a query that is.

A vocabulary may hold single letters of a script that its encoder was never taught: so only pieces of several
letters count. Chinese characters are words by themselves, but an encoder that knows them has thousands.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from catalog.search import words

_MANY_PIECES, _LARGE_SHARE = 500, 0.05  # the latter for small vocabularies
_FEW_PIECES, _LETTERS_A_PIECE = 3, 3
_HAN, _MANY_CHARACTERS = "CJK", 3_000


class Vocabulary:
    """What the tokenizer of a sentence encoder tells of it."""

    def __init__(self, tokenizer: Any) -> None:
        pieces: Iterable[str] = tokenizer.get_vocab()
        if "ByteLevel" in repr(tokenizer.decoder):
            pieces = write_as_text(pieces)
        self._tokenizer = tokenizer
        self._scripts = find_known_scripts(pieces)
        self._unknown = getattr(tokenizer.model, "unk_token", None)

    def knows(self, word: str) -> bool:
        if not is_written_in(word, self._scripts):
            return False
        pieces = self._tokenizer.encode(word, add_special_tokens=False).tokens
        return self._unknown not in pieces and is_whole(word, len(pieces))


@lru_cache(maxsize=1 << 14)
def script_of(letter: str) -> str:
    """The first word of the character's name, as `LATIN`; empty for what is no letter."""
    return unicodedata.name(letter, "").split(" ")[0].split("-")[0] if letter.isalpha() else ""


def find_known_scripts(pieces: Iterable[str]) -> frozenset[str]:
    longer: Counter[str] = Counter()
    single: Counter[str] = Counter()
    for piece in pieces:
        found = [script for script in map(script_of, piece) if script]
        if found and found[0] == found[-1]:
            (longer if len(found) > 1 else single)[found[0]] += 1
    many = min(_MANY_PIECES, _LARGE_SHARE * longer.total())
    known = {script for script, count in longer.items() if count >= many}
    return frozenset(known | {_HAN} if single[_HAN] >= _MANY_CHARACTERS else known)


def write_as_text(pieces: Iterable[str]) -> list[str]:
    """Pieces of a vocabulary that writes bytes as letters (GPT-2's way), as the text they stand for."""
    decode = _letters_to_bytes().get
    return [bytes(decode(letter, 32) for letter in piece).decode(errors="ignore") for piece in pieces]


def measure_known(text: str, is_known: Callable[[str], bool]) -> float:
    """The share of a query's significant words that are known. A text without spaces counts as one word for
    each pair of its characters; what has no letters does not count. Of a text without words, as signs alone,
    nothing is known.
    """
    known = total = 0
    significant = words.significant_words(text)
    for word in significant:
        if any(map(script_of, word.typed)):
            weight = len(word.parts[0].terms) if words.is_unspaced(word.typed) else 1
            total += weight
            known += weight if is_known(word.typed) else 0
    return known / total if total else float(bool(significant))


def is_whole(word: str, pieces: int) -> bool:
    """Whether an encoder knows a word of its scripts: what it was not taught falls to small pieces. Texts
    without spaces fall to pieces in any case.
    """
    return pieces <= max(_FEW_PIECES, 1 + len(word) // _LETTERS_A_PIECE) or words.is_unspaced(word)


def is_written_in(word: str, scripts: frozenset[str]) -> bool:
    return all(script in scripts for script in map(script_of, word) if script)


def _letters_to_bytes() -> dict[str, int]:
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + at): byte for at, byte in enumerate(others)}
