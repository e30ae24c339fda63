"""The search engine's interface: a request in, an outcome out, over the current generation."""

import dataclasses
import logging
import time
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock

from catalog.search import generations
from catalog.search.answers import answer
from catalog.search.compiled import Compiled
from catalog.search.encoders import fit_queries
from catalog.search.errors import IndexDamaged
from catalog.search.index import Speller
from catalog.search.meaning import Encoder
from catalog.search.request import SearchOutcome, SearchRequest
from catalog.search.suggestions import suggest

_REMEMBERED_WORDS = 4096
LEAST_SHARE_WITH_VECTORS = 0.95

logger = logging.getLogger(__name__)


class OpenGeneration:
    """One opened generation."""

    def __init__(self, folder: Path, encoder: Encoder | None) -> None:
        generation, self.compiled = generations.open_current(folder)
        self.number = generation.number
        self.encoder = _choose_encoder(self.compiled, encoder)
        # Not a method of ours: a circle would keep a replaced generation in memory until it is searched for.
        self.spell = lru_cache(maxsize=_REMEMBERED_WORDS)(partial(_spell, Speller(folder, generation)))


def _choose_encoder(compiled: Compiled, encoder: Encoder | None) -> Encoder | None:
    """None while the vectors are of another encoder, or many tools have none yet: they would be last."""
    notes = compiled.notes
    if encoder is None or encoder.name != notes["encoder"]:
        return None
    if notes["without_vector"] > (1 - LEAST_SHARE_WITH_VECTORS) * len(compiled):
        return None
    return fit_queries(encoder, compiled.vectors.shape[1]) if compiled.vectors.shape[1] else None


def _spell(speller: Speller, word: str) -> tuple[str, ...]:
    """No suggestion where the store was replaced under a generation that is still in use."""
    try:
        return tuple(speller.suggest(word, limit=3))
    except IndexDamaged as error:
        logger.info("no spelling suggestions: %s", error)
        return ()


class SearchEngine:
    """Searches the index in a folder; thread-safe."""

    def __init__(self, folder: Path, encoder: Encoder | None) -> None:
        self._folder = folder
        self._encoder = encoder
        self._lock = Lock()
        self._opened: tuple[tuple[int, int], OpenGeneration] | None = None

    def search(self, request: SearchRequest) -> SearchOutcome:
        """Raises `IndexDamaged` when there is no index, `InvalidInput` for a pattern that cannot be run."""
        started = time.perf_counter()
        snapshot = self.snapshot()
        outcome = answer(snapshot.compiled, request, snapshot.encoder)
        return dataclasses.replace(
            outcome,
            did_you_mean=suggest(snapshot.compiled, request, outcome, snapshot.spell),
            generation=snapshot.number,
            took_ms=(time.perf_counter() - started) * 1000,
        )

    def snapshot(self) -> OpenGeneration:
        """The current generation. Checking for a new one costs one `stat`."""
        opened = self._opened
        if opened is not None and opened[0] == generations.current_stamp(self._folder):
            return opened[1]
        with self._lock:
            stamp = generations.current_stamp(self._folder)
            if self._opened is None or self._opened[0] != stamp:
                self._opened = (stamp, OpenGeneration(self._folder, self._encoder))
            return self._opened[1]
