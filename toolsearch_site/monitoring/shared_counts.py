"""Sums counters over the processes of a node. Each process writes its counters to its own file once a second,
so a full disk costs the file and never a request.
"""

import json
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from catalog.private_folder import make_private_folder

WRITE_EVERY_SECONDS = 1.0

Label = tuple[str, str]
CounterKey = tuple[str, tuple[Label, ...]]  # a sample's name and labels

logger = logging.getLogger(__name__)


class SharedCounts:
    """The counters of this process and the files of the others in the folder."""

    def __init__(self, folder: Path, counters: Iterable[Collector]) -> None:
        self._folder, self._counters = folder, tuple(counters)
        self._starting = threading.Lock()
        self._writer: threading.Thread | None = None

    def keep_writing(self) -> None:
        """Start writing this process's file, unless that was started before."""
        if self._writer is not None:
            return
        with self._starting:
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_for_ever, name="counts", daemon=True)
                self._writer.start()

    def collect(self) -> Iterator[Metric]:
        """The counters summed over all processes, ended ones included."""
        others: Counter[CounterKey] = Counter()
        for file in self._folder.glob("*.json"):
            if file.name != self._own_file.name:
                others.update(_read(file))
        for family in self._families():
            total = others.copy()
            total.update(_samples_of(family))
            summed = Metric(family.name, family.documentation, family.type)
            own_names = tuple(f"{family.name}{ending}" for ending in ("_total", "_bucket", "_count", "_sum"))
            for (name, labels), value in total.items():
                if name in own_names:
                    summed.add_sample(name, dict(labels), value)
            yield summed

    def write(self) -> None:
        """Raises OSError where the disk refuses; the previous file stays."""
        samples = [
            (name, labels, value)
            for family in self._families()
            for (name, labels), value in _samples_of(family).items()
        ]
        make_private_folder(self._folder)
        being_written = self._own_file.with_suffix(".new")
        try:
            being_written.write_text(json.dumps(samples))
            being_written.replace(self._own_file)
        except OSError:
            being_written.unlink(missing_ok=True)
            raise

    @property
    def _own_file(self) -> Path:
        return self._folder / f"{os.getpid()}.json"

    def _families(self) -> Iterator[Metric]:
        for counter in self._counters:
            yield from counter.collect()

    def _write_for_ever(self) -> None:
        was_written = True
        while True:
            time.sleep(WRITE_EVERY_SECONDS)
            try:
                self.write()
            except OSError as error:
                if was_written:
                    logger.warning("counts cannot be written and stay in this process: %s", error)
                was_written = False
            else:
                was_written = True


def _samples_of(family: Metric) -> Counter[CounterKey]:
    return Counter(
        {
            (sample.name, tuple(sample.labels.items())): sample.value
            for sample in family.samples
            if not sample.name.endswith("_created")
        }
    )


def _read(file: Path) -> Counter[CounterKey]:
    """Empty where the file cannot be read: a process may have ended while it wrote."""
    try:
        rows = json.loads(file.read_bytes())
        return Counter(
            {(name, tuple((key, text) for key, text in labels)): value for name, labels, value in rows}
        )
    except (OSError, ValueError, TypeError):
        return Counter()
