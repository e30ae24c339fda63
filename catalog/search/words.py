"""One analysis of text for documents and queries: which words it holds.

Words end at spaces, signs, case changes (`createIssue`) and digits (`base64`). A run that was split keeps
its joined form as well, so that `GitHub` and `github` meet. Chinese, Japanese and Korean text, which has no
spaces, becomes pairs of neighbouring characters. Letters are folded (width, case, accents) and English
endings taken off.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import regex
import Stemmer

from catalog.search.stopwords import STOP_WORDS

_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー"
_RUN = regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\p{M}]*")
_ASCII_RUN = re.compile(r"[A-Za-z0-9]+")  # the same there, and several times as fast
_PART = regex.compile(
    rf"[{_CJK}]+|\p{{Lu}}{{2,}}s(?!\p{{Ll}})|\p{{Lu}}+(?!\p{{Ll}})|\p{{N}}+"
    rf"|[\p{{Lu}}\p{{Lt}}]?(?:(?![{_CJK}])[\p{{Ll}}\p{{Lo}}\p{{Lm}}\p{{M}}])+|."
)
_IS_CJK = regex.compile(rf"[{_CJK}]")
_ACCENTS = regex.compile(r"[\u0300-\u036f]+")
_MAX_WORD_CHARS = 64
_MIN_SPOKEN_CHARS = 3
_REMEMBERED_TEXTS = 32
_REMEMBERED_RUNS = 1 << 14  # several objects each: more of them would make garbage collections long
_REMEMBERED_WORDS = 1 << 16

_stemmer = Stemmer.Stemmer("english", 0)  # words are remembered below
_stemmer_lock = Lock()  # a stemmer keeps the word it works on in itself


@dataclass(frozen=True, slots=True)
class Part:
    """A word inside a run: as typed, and as indexed (one term, or the character pairs of a run without
    spaces).
    """

    typed: str
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a word stands in a text, and the terms it is indexed by."""

    start: int
    end: int
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """Letters and digits without a sign between them. `joined` is set when the run was split into parts."""

    typed: str
    parts: tuple[Part, ...]
    joined: str | None
    is_stop: bool = False


@lru_cache(maxsize=_REMEMBERED_TEXTS)
def runs(text: str) -> tuple[Run, ...]:
    """The words of a text in order, each with its parts; remembered, as a search asks several times."""
    return tuple(map(analyze_run, _find_runs(text)))


@lru_cache(maxsize=_REMEMBERED_TEXTS)
def telling_runs(text: str) -> tuple[Run, ...]:
    """The words of a query that count: all but stop words, or these as well when there is nothing else."""
    found = runs(text)
    return tuple(run for run in found if not run.is_stop) or found


def document_terms(text: str) -> list[str]:
    """Every term of a text, repeated as often as it occurs; stop words included."""
    terms: list[str] = []
    for typed in _find_runs(text):
        terms.extend(_indexed_terms(typed))
    return terms


def locate(text: str) -> Iterator[Place]:
    """The words of a text where they stand; of a run that was split, each part with the joined form."""
    for found in _RUN.finditer(text):
        run = analyze_run(_compose(found[0]))
        joined = () if run.joined is None else (run.joined,)
        if run.typed != found[0] or len(run.parts) == 1:
            terms = tuple(term for part in run.parts for term in part.terms)
            yield Place(*found.span(), (*terms, *joined))
            continue
        at = found.start()
        for part in run.parts:
            at = text.index(part.typed, at)
            yield Place(at, at + len(part.typed), (*part.terms, *joined))
            at += len(part.typed)


def plain_words(text: str) -> set[str]:
    """The words of a text folded but not stemmed: what a spelling suggestion may offer."""
    found = {fold(part.typed) for run in runs(text) for part in run.parts if len(part.terms) == 1}
    return {word for word in found if word.isalpha() and _MIN_SPOKEN_CHARS <= len(word) <= _MAX_WORD_CHARS}


@lru_cache(maxsize=_REMEMBERED_RUNS)
def analyze_run(typed: str) -> Run:
    found = [part for part in _PART.findall(typed) if part]
    if len(found) == 1:
        return Run(typed, (_make_part(found[0]),), None, is_stop=fold(typed) in STOP_WORDS)
    joined = None if _IS_CJK.search(typed) else _stem(fold(typed))
    parts = tuple(_make_part(part) for part in found if len(part) > 1 or _IS_CJK.match(part))
    return Run(typed, parts or (Part(typed, (joined or fold(typed),)),), joined if parts else None)


def fold(text: str) -> str:
    """Lower case, without accents, wide and narrow forms alike."""
    if text.isascii():
        return text.lower()
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFKC", plain)


@lru_cache(maxsize=_REMEMBERED_WORDS)
def _indexed_terms(typed: str) -> tuple[str, ...]:
    run = analyze_run(typed)
    terms = [term for part in run.parts for term in part.terms]
    if run.joined is not None:
        terms.append(run.joined)
    # A query of one character must find the texts that hold it.
    terms.extend(
        char for part in run.parts if len(part.typed) > 1 and _IS_CJK.match(part.typed) for char in part.typed
    )
    return tuple(terms)


def _make_part(typed: str) -> Part:
    folded = fold(typed)
    if not _IS_CJK.match(typed):
        return Part(typed, (_stem(folded),))
    if len(folded) == 1:
        return Part(typed, (folded,))
    return Part(typed, tuple(folded[at : at + 2] for at in range(len(folded) - 1)))


def _stem(folded: str) -> str:
    word = folded[:_MAX_WORD_CHARS]
    if not (word.isascii() and word.isalpha()):
        return word
    with _stemmer_lock:
        stem: str = _stemmer.stemWord(word)
    return stem


def _find_runs(text: str) -> list[str]:
    found: list[str] = _ASCII_RUN.findall(text) if text.isascii() else _RUN.findall(_compose(text))
    return found


def _compose(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)
