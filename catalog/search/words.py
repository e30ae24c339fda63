"""Splits text into words, the same way for documents and queries.

Words end at spaces, signs, case changes (`createIssue`) and digits (`base64`). A compound that was split
keeps its joined form as well, so that `GitHub` and `github` match. Scripts that write no spaces, and Korean,
which puts its grammar at the end of words, become pairs of neighbouring characters, and single characters.
Letters are folded (width, case, accents) and endings removed, English ones where letters are Latin.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from threading import Lock
from typing import Any

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

_PAIRED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = regex.compile(
    rf"(?=[\p{{L}}\p{{N}}])(?:(?:[{_PAIRED}](?<=[\p{{L}}\p{{N}}\p{{M}}])\p{{M}}*)+"
    rf"|(?:(?![{_PAIRED}])[\p{{L}}\p{{N}}\p{{M}}\u00ad\u200d])+)"
)
# The soft hyphen, and the joiner of letters, which is written or left out: both stand inside words.
_UNSEEN = regex.compile(r"[\u00ad\u200d]+")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")  # the same there, and several times as fast
_PART = regex.compile(
    r"\p{Lu}{2,}s(?!\p{Ll})|\p{Lu}+(?!\p{Ll})|\p{N}+|[\p{Lu}\p{Lt}]?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|."
)
_IS_PAIRED = regex.compile(rf"[{_PAIRED}]")
_CHARACTER = regex.compile(r".\p{M}*")
# Accents, but not the one that makes the Cyrillic short i a letter of its own. Then what Hebrew and Arabic
# may leave out (points, the stretching line, the hamza on a letter), and the dot below of Hindi.
_ACCENTS = regex.compile(
    r"(?<![иу])\u0306|[\u0300-\u0305\u0307-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u093c]+"
)
# Letters that people write without their stroke, dot or ligature, as keyboards have them: Unicode does not
# take them to pieces. `I` is the capital of the dotless i too. Persian and Urdu ones that Arabic keyboards
# lack.
_ALIKE = str.maketrans(
    {"ı": "i", "đ": "d", "ł": "l", "ø": "o", "æ": "ae", "œ": "oe", "ک": "ك", "ی": "ي", "ہ": "ه"}
)
_ARABIC_ARTICLE = regex.compile(r"^(?:[وبكف]?ال|و?لل)(?=.{3})")
_QUOTED = re.compile(
    r"\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|`[^`]*`|(?<!\w)'[^']*'(?!\w)|(?<!\w)‘[^’]*’(?!\w)"
)
_LEAST_UNQUOTED = 2
_UMLAUT = re.compile("[äöüÄÖÜ]")
_MAX_WORD_CHARS = 64
_MIN_SPOKEN_CHARS = 3

_ARABIC_ACCUSATIVE = regex.compile(r"(?<=.{3})ا$")
# Where a script means one family of languages. Words are remembered below, so the stemmers need not.
_STEMMERS = {
    script: (regex.compile(rf"\p{{{script}}}[\p{{{script}}}\p{{M}}]*"), Stemmer.Stemmer(language, 0))
    for script, language in (
        ("Cyrillic", "russian"),
        ("Arabic", "arabic"),
        ("Devanagari", "hindi"),
        ("Greek", "greek"),
        ("Armenian", "armenian"),
        ("Tamil", "tamil"),
    )
}
_english = Stemmer.Stemmer("english", 0)
_stemmer_lock = Lock()  # a stemmer keeps the word it works on in itself


@dataclass(frozen=True, slots=True)
class WordPart:
    """A part of a compound: as typed, and as indexed (one term, or the pairs of characters of a text
    without spaces).
    """

    typed: str
    terms: tuple[str, ...]

    @property
    def characters(self) -> tuple[str, ...]:
        """What a text without spaces is indexed by beside its pairs. Alone they say too little."""
        if len(self.typed) == 1 or not is_unspaced(self.typed):
            return ()
        found = _split_characters(fold_text(self.typed))
        return found if len(found) > 1 else ()


@dataclass(frozen=True, slots=True)
class WordPlace:
    """Where a word is in a text, and the terms it is indexed by."""

    start: int
    end: int
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Word:
    """Letters and digits without a sign between them. `joined` is set when it was split into parts, and where
    umlauts are also written as two letters.
    """

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


def cut_quoted(text: str) -> str:
    """A request without what it quotes, if that leaves more than a word."""
    rest = _QUOTED.sub(" ", text)
    if rest == text or sum(not word.is_stop for word in split_words(rest)) < _LEAST_UNQUOTED:
        return text
    return rest


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


def is_unspaced(typed: str) -> bool:
    """Whether a word is of a script that is indexed by pairs of characters."""
    return _IS_PAIRED.match(typed) is not None


def _analyze(typed: str) -> Word:
    found = [typed] if is_unspaced(typed) else _PART.findall(typed)
    if len(found) == 1:
        is_stop = fold_text(typed) in STOP_WORDS
        return Word(typed, (_make_part(found[0]),), _write_umlauts_out(typed), is_stop=is_stop)
    joined = _stem(fold_text(typed))
    parts = tuple(_make_part(part) for part in found if len(part) > 1)
    return Word(typed, parts or (WordPart(typed, (joined,)),), joined if parts else None)


_remembered_run = lru_cache(maxsize=REMEMBERED_RUNS)(_analyze)


def fold_text(text: str) -> str:
    """Lower case, without accents, wide and narrow forms alike."""
    if text.isascii():
        return text.lower()
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFKC", plain).translate(_ALIKE)


def _indexed_terms(typed: str) -> tuple[str, ...]:
    word = analyze_word(typed)
    terms = [term for part in word.parts for term in part.terms]
    if word.joined is not None:
        terms.append(word.joined)
    terms.extend(character for part in word.parts for character in part.characters)
    return tuple(terms)


_remembered_terms = lru_cache(maxsize=REMEMBERED_WORDS)(_indexed_terms)


def _write_umlauts_out(typed: str) -> str | None:
    if typed.isascii() or not _UMLAUT.search(typed):
        return None
    return _stem(fold_text(_UMLAUT.sub(r"\g<0>e", typed)))


def _make_part(typed: str) -> WordPart:
    folded = fold_text(typed)
    if not is_unspaced(typed):
        return WordPart(typed, (_stem(folded),))
    found = _split_characters(folded)
    pairs = tuple(first + second for first, second in pairwise(found))
    return WordPart(typed, pairs or (folded,))


def _split_characters(folded: str) -> tuple[str, ...]:
    """Characters with the marks on them."""
    return tuple(folded if folded.isalnum() else _CHARACTER.findall(folded))


def _stem(folded: str) -> str:
    word = folded[:_MAX_WORD_CHARS]
    if word.isascii():
        return _run_stemmer(_english, word) if word.isalpha() else word
    for script, (is_written_in, stemmer) in _STEMMERS.items():
        if is_written_in.fullmatch(word):
            return _stem_arabic(stemmer, word) if script == "Arabic" else _run_stemmer(stemmer, word)
    return word


def _stem_arabic(stemmer: Any, word: str) -> str:
    """The stemmer tells a noun by its article, and takes letters from one without it. Nor does it take the
    ending of an accusative.
    """
    return _ARABIC_ACCUSATIVE.sub("", _run_stemmer(stemmer, "ال" + _ARABIC_ARTICLE.sub("", word)))


def _run_stemmer(stemmer: Any, word: str) -> str:
    with _stemmer_lock:
        stem: str = stemmer.stemWord(word)
    return stem


def _find_words(text: str) -> list[str]:
    found: list[str] = _ASCII_WORD.findall(text) if text.isascii() else _WORD.findall(_compose(text))
    return found


def _compose(text: str) -> str:
    return text if text.isascii() else _UNSEEN.sub("", unicodedata.normalize("NFKC", text))
