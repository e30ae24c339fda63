"""Measures a refresh without the network: 50-tool servers stored for the first time, and again unchanged.

Then one server that lists 10,000 tools, all new, then all changed, while somebody else writes to the database
every few milliseconds: the longest that they had to wait. It exits 1 when that was a second or more.

    python -m bench.refresh [TOOLS …]

Real definitions from TOOLSEARCH_BENCH_DATA, on a database of its own in a temporary folder.
"""

import itertools
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DATA = Path(os.environ.get("TOOLSEARCH_BENCH_DATA", "../shared/data"))
TOOLS_PER_SERVER = 50
MOST_TOOLS = 10_000
LONGEST_WAIT_SECONDS = 1.0
DEFAULT_SIZES = (100, 1_000, 10_000)
HEADINGS = ("tools", "servers", "first s", "ms/tool", "unchanged s", "ms/tool", "ratio", "tool rows written")


def main(sizes: tuple[int, ...]) -> None:
    with tempfile.TemporaryDirectory(prefix="toolsearch-bench-") as folder:
        os.environ |= {"TOOLSEARCH_DATA": folder, "DJANGO_SETTINGS_MODULE": "toolsearch_site.settings"}
        import django  # noqa: PLC0415  the settings read the environment set above
        from django.core.management import call_command  # noqa: PLC0415

        django.setup()
        call_command("migrate", verbosity=0)
        print("".join(f"{heading:>18}" for heading in HEADINGS))
        for size in sizes:
            print("".join(f"{cell:>18}" for cell in _measure(size)))
        if _measure_waiting() >= LONGEST_WAIT_SECONDS:
            sys.exit(1)


def _measure(size: int) -> Iterator[str]:
    from catalog.models import CatalogVersion, Server  # noqa: PLC0415

    Server.objects.all().delete()
    listings = list(_read_listings(size))
    servers = [
        Server.objects.create(name=f"server-{number}", transport="stdio", command="none")
        for number in range(len(listings))
    ]
    first = _refresh(servers, listings)
    version = CatalogVersion.current()
    again = _refresh(servers, listings)
    yield f"{size:,}"
    yield f"{len(servers):,}"
    yield f"{first:.2f}"
    yield f"{first / size * 1000:.3f}"
    yield f"{again:.2f}"
    yield f"{again / size * 1000:.3f}"
    yield f"{again / first:.2f}"
    yield str(CatalogVersion.current() - version)


def _measure_waiting() -> float:
    from catalog.models import Server  # noqa: PLC0415

    Server.objects.all().delete()
    server = Server.objects.create(name="large", transport="stdio", command="none")
    [listing] = _read_listings(MOST_TOOLS, per_server=MOST_TOOLS)
    changed = [{**one, "description": "Changed. " + one.get("description", "")} for one in listing]
    longest = 0.0
    for what, given in (("new", listing), ("changed", changed)):
        with _writing_beside() as waits:
            took = _refresh([server], [given])
        longest = max(longest, *waits)
        print(f"{len(given):,} {what} tools at once: {took:.2f} s, another writer waited {max(waits):.2f}")
    return longest


@contextmanager
def _writing_beside() -> Iterator[list[float]]:
    """Write a row from another connection again and again; how long each took."""
    from django.db import connection  # noqa: PLC0415
    from django.utils import timezone  # noqa: PLC0415

    from catalog.models import Heartbeat  # noqa: PLC0415

    waits: list[float] = []
    is_over = threading.Event()

    def write() -> None:
        while not is_over.wait(0.005):
            started = time.perf_counter()
            Heartbeat.objects.update_or_create(part="bench", defaults={"at": timezone.now()})
            waits.append(time.perf_counter() - started)
        connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield waits
    finally:
        is_over.set()
        writer.join()


def _read_listings(size: int, per_server: int = TOOLS_PER_SERVER) -> Iterator[list[dict[str, Any]]]:
    path = DATA / "catalog-10k" / "tools.jsonl"
    with path.open(encoding="utf-8") as lines:
        definitions = [json.loads(line) for line in itertools.islice(lines, size)]
    for number, definition in enumerate(definitions):
        del definition["server"]
        definition["name"] = f"{definition['name'][:100]}_{number}"
    for start in range(0, size, per_server):
        yield definitions[start : start + per_server]


def _refresh(servers: list[Any], listings: list[list[dict[str, Any]]]) -> float:
    """Seconds to carry out one refresh job per server, as a worker would."""
    from catalog.domain.connection import ServerListing  # noqa: PLC0415
    from catalog.models.jobs import JobKind  # noqa: PLC0415
    from catalog.services import jobs, refresh  # noqa: PLC0415

    started = time.perf_counter()
    for server, listing in zip(servers, listings, strict=True):
        job = refresh.request_refresh(server=server)

        def run(held: Any, given: tuple[Any, ...] = tuple(listing)) -> None:
            refresh.run_refresh(held, list_tools=lambda *_, **__: ServerListing(given))

        jobs.run_job(job_id=job.pk, holder="bench", handlers={JobKind.REFRESH_SERVER: run})
    return time.perf_counter() - started


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or DEFAULT_SIZES)
