"""Splits text into words, the same way for documents and queries.

Words end at spaces, signs, case changes (`createIssue`) and digits (`base64`). A compound that was split
keeps its joined form as well, so that `GitHub` and `github` match. Chinese, Japanese and Korean text, which
has no spaces, becomes pairs of neighbouring characters. Letters are folded (width, case, accents) and English
endings removed.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import regex
import Stemmer

from catalog.domain.limits import (
    QUERY_CHARS,
    REMEMBERED_OTHER_WORD_CHARS,
    REMEMBERED_RUNS,
    REMEMBERED_TEXTS,
    REMEMBERED_WORD_CHARS,
    REMEMBERED_WORDS,
)
from catalog.search.stopwords import STOP_WORDS

_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー"
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\p{M}]*")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")  # the same there, and several times as fast
_PART = regex.compile(
    rf"[{_CJK}]+|\p{{Lu}}{{2,}}s(?!\p{{Ll}})|\p{{Lu}}+(?!\p{{Ll}})|\p{{N}}+"
    rf"|[\p{{Lu}}\p{{Lt}}]?(?:(?![{_CJK}])[\p{{Ll}}\p{{Lo}}\p{{Lm}}\p{{M}}])+|."
)
_IS_CJK = regex.compile(rf"[{_CJK}]")
_ACCENTS = regex.compile(r"[\u0300-\u036f]+")
_MAX_WORD_CHARS = 64
_MIN_SPOKEN_CHARS = 3

_stemmer = Stemmer.Stemmer("english", 0)  # words are remembered below
_stemmer_lock = Lock()  # a stemmer keeps the word it works on in itself


@dataclass(frozen=True, slots=True)
class WordPart:
    """A part of a compound: as typed, and as indexed (one term, or character pairs of a text
    without spaces).
    """

    typed: str
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WordPlace:
    """Where a word is in a text, and the terms it is indexed by."""

    start: int
    end: int
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Word:
    """Letters and digits without a sign between them. `joined` is set when it was split into parts."""

    typed: str
    parts: tuple[WordPart, ...]
    joined: str | None
    is_stop: bool = False


def split_words(text: str) -> tuple[Word, ...]:
    """The words of a text in order, each with its parts; of a query remembered, as a search asks several
    times.
    """
    return _remembered_runs(text) if len(text) <= QUERY_CHARS else tuple(map(analyze_word, _find_words(text)))


@lru_cache(maxsize=REMEMBERED_TEXTS)
def _remembered_runs(text: str) -> tuple[Word, ...]:
    return tuple(map(analyze_word, _find_words(text)))


def significant_words(text: str) -> tuple[Word, ...]:
    """The significant words of a query: all but stop words, or all where there is nothing else."""
    found = split_words(text)
    return tuple(word for word in found if not word.is_stop) or found


def document_terms(text: str) -> list[str]:
    """Every term of a text, repeated as often as it occurs; stop words included."""
    terms: list[str] = []
    for typed in _find_words(text):
        terms.extend(_remembered_terms(typed) if is_remembered(typed) else _indexed_terms(typed))
    return terms


def locate(text: str) -> Iterator[WordPlace]:
    """The words of a text with their positions; of a compound, each part with the joined form."""
    for found in _WORD.finditer(text):
        word = analyze_word(_compose(found[0]))
        joined = () if word.joined is None else (word.joined,)
        if word.typed != found[0] or len(word.parts) == 1:
            terms = tuple(term for part in word.parts for term in part.terms)
            yield WordPlace(*found.span(), (*terms, *joined))
            continue
        at = found.start()
        for part in word.parts:
            at = text.index(part.typed, at)
            yield WordPlace(at, at + len(part.typed), (*part.terms, *joined))
            at += len(part.typed)


def plain_words(text: str) -> set[str]:
    """The words of a text folded but not stemmed, for spelling suggestions."""
    found = {
        fold_text(part.typed) for word in split_words(text) for part in word.parts if len(part.terms) == 1
    }
    return {word for word in found if word.isalpha() and _MIN_SPOKEN_CHARS <= len(word) <= _MAX_WORD_CHARS}


def is_remembered(word: str) -> bool:
    """Only words of usual length: of long ones a few could fill the memory, and they hardly come again."""
    return len(word) <= (REMEMBERED_WORD_CHARS if word.isascii() else REMEMBERED_OTHER_WORD_CHARS)


def analyze_word(typed: str) -> Word:
    return _remembered_run(typed) if is_remembered(typed) else _analyze(typed)


def _analyze(typed: str) -> Word:
    found = [part for part in _PART.findall(typed) if part]
    if len(found) == 1:
        return Word(typed, (_make_part(found[0]),), None, is_stop=fold_text(typed) in STOP_WORDS)
    joined = None if _IS_CJK.search(typed) else _stem(fold_text(typed))
    parts = tuple(_make_part(part) for part in found if len(part) > 1 or _IS_CJK.match(part))
    return Word(typed, parts or (WordPart(typed, (joined or fold_text(typed),)),), joined if parts else None)


_remembered_run = lru_cache(maxsize=REMEMBERED_RUNS)(_analyze)


def fold_text(text: str) -> str:
    """Lower case, without accents, wide and narrow forms alike."""
    if text.isascii():
        return text.lower()
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFKC", plain)


def _indexed_terms(typed: str) -> tuple[str, ...]:
    word = analyze_word(typed)
    terms = [term for part in word.parts for term in part.terms]
    if word.joined is not None:
        terms.append(word.joined)
    # A query of one character must find the texts that hold it.
    terms.extend(
        char
        for part in word.parts
        if len(part.typed) > 1 and _IS_CJK.match(part.typed)
        for char in part.typed
    )
    return tuple(terms)


_remembered_terms = lru_cache(maxsize=REMEMBERED_WORDS)(_indexed_terms)


def _make_part(typed: str) -> WordPart:
    folded = fold_text(typed)
    if not _IS_CJK.match(typed):
        return WordPart(typed, (_stem(folded),))
    if len(folded) == 1:
        return WordPart(typed, (folded,))
    return WordPart(typed, tuple(folded[at : at + 2] for at in range(len(folded) - 1)))


def _stem(folded: str) -> str:
    word = folded[:_MAX_WORD_CHARS]
    if not (word.isascii() and word.isalpha()):
        return word
    with _stemmer_lock:
        stem: str = _stemmer.stemWord(word)
    return stem


def _find_words(text: str) -> list[str]:
    found: list[str] = _ASCII_WORD.findall(text) if text.isascii() else _WORD.findall(_compose(text))
    return found


def _compose(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)
