"""The one way to search: a request in, an outcome out, over whichever generation is in force."""

import dataclasses
import time
from functools import lru_cache
from pathlib import Path
from threading import Lock

from catalog.search import generations
from catalog.search.answers import answer
from catalog.search.compiled import Compiled
from catalog.search.index import Speller
from catalog.search.meaning import Encoder
from catalog.search.request import SearchOutcome, SearchRequest
from catalog.search.suggestions import suggest

_REMEMBERED_WORDS = 4096


class Snapshot:
    """One opened generation."""

    def __init__(self, folder: Path, encoder: Encoder | None) -> None:
        generation, self.compiled = generations.open_current(folder)
        self.number = generation.number
        same = encoder is not None and encoder.name == self.compiled.notes["encoder"]
        self.encoder = encoder if same else None
        self._speller = Speller(folder, generation)
        self.spell = lru_cache(maxsize=_REMEMBERED_WORDS)(self._spell)

    def _spell(self, word: str) -> tuple[str, ...]:
        return tuple(self._speller.suggest(word, limit=3))


class SearchEngine:
    """Searches the index in a folder; safe to share among threads. It notices a new generation by one look at a file."""

    def __init__(self, folder: Path, encoder: Encoder | None) -> None:
        self._folder = folder
        self._encoder = encoder
        self._lock = Lock()
        self._stamp = (0, 0)
        self._snapshot: Snapshot | None = None

    def search(self, request: SearchRequest) -> SearchOutcome:
        """Raises `IndexDamaged` when there is no index, and `InvalidInput` for a pattern that cannot be run."""
        started = time.perf_counter()
        snapshot = self.snapshot()
        outcome = answer(snapshot.compiled, request, snapshot.encoder)
        took_ms = (time.perf_counter() - started) * 1000
        return dataclasses.replace(
            outcome,
            did_you_mean=suggest(snapshot.compiled, request, outcome, snapshot.spell),
            generation=snapshot.number,
            took_ms=took_ms,
        )

    def snapshot(self) -> Snapshot:
        """The generation in force now."""
        stamp = generations.current_stamp(self._folder)
        snapshot = self._snapshot
        if snapshot is not None and stamp == self._stamp:
            return snapshot
        with self._lock:
            stamp = generations.current_stamp(self._folder)
            if self._snapshot is None or stamp != self._stamp:
                self._snapshot = Snapshot(self._folder, self._encoder)
                self._stamp = stamp
            return self._snapshot
