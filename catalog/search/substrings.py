"""Which texts contain a text: found by looking through their distinct words, not through all of them."""

import operator
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, chain, repeat

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]

_BREAK = "\n"  # in no word, so that nothing is found across two
_LEAST_CHARS = 2  # less is inside so many words that the texts themselves are sooner looked through


class Texts:
    """A text without blanks is inside another exactly when it is inside one of that one's words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        rows_by_word: dict[str, list[int]] = {}
        for row, text in enumerate(texts):
            for word in set(text.split()):
                rows_by_word.setdefault(word, []).append(row)
        self._words = _BREAK.join(rows_by_word)
        self._word_ends = np.array(list(accumulate(len(word) + 1 for word in rows_by_word)), dtype=np.int64)
        counts = [len(rows) for rows in rows_by_word.values()]
        self._use_words = np.repeat(np.arange(len(counts)), counts)
        self._use_rows = np.array(list(chain.from_iterable(rows_by_word.values())), dtype=np.int64)

    def equal_to(self, text: str) -> Mask:
        fits = np.zeros(len(self._texts), dtype=np.bool_)
        fits[self._rows_by_text.get(text, [])] = True
        return fits

    def containing(self, text: str) -> Mask:
        longest = max(text.split(), key=len, default="")
        if len(longest) < _LEAST_CHARS:
            return np.fromiter(map(operator.contains, self._texts, repeat(text)), np.bool_, len(self._texts))
        fits = self._with_word_around(longest)
        if longest != text:
            for row in np.flatnonzero(fits).tolist():
                fits[row] = text in self._texts[row]
        return fits

    @cached_property
    def _rows_by_text(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for row, text in enumerate(self._texts):
            rows.setdefault(text, []).append(row)
        return rows

    def _with_word_around(self, part: str) -> Mask:
        fits = np.zeros(len(self._texts), dtype=np.bool_)
        places = self._places(part)
        if places:
            words = np.zeros(len(self._word_ends), dtype=np.bool_)
            words[np.searchsorted(self._word_ends, places, side="right")] = True
            fits[self._use_rows[words[self._use_words]]] = True
        return fits

    def _places(self, part: str) -> list[int]:
        places, at = [], self._words.find(part)
        while at >= 0:
            places.append(at)
            at = self._words.find(part, at + len(part))
        return places
