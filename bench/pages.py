"""Measures the console's pages: the Tools page at 100 and 10,000 tools, and every page's bytes compressed.

    python -m bench.pages

Real definitions from TOOLSEARCH_BENCH_DATA, on a database of its own in a temporary folder. Times are of
whole requests inside one process, middle of many; on a busy machine the processor's time, which is this
process's own, tells more than the clock. Bytes are of the page as gzip sends it, assets aside.
Ends with 1 where a page misses its bound.
"""

import gzip
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

DATA = Path(os.environ.get("TOOLSEARCH_BENCH_DATA", "../shared/data"))
SIZES = (100, 10_000)
ROUNDS = 30
MOST_MS_APART = 150
MOST_BYTES = 300_000
FILTERS = {
    "as it opens": "/tools/",
    "a word": "/tools/?q=search",
    "deferred": "/tools/?decision=defer",
    "by name, page 2": "/tools/?sort=name&page=2",
    "smallest first": "/tools/?sort=-size",
    "of one size and reason": "/tools/?size=250&reason=mode_always",
}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="toolsearch-bench-") as folder:
        os.environ |= {"TOOLSEARCH_DATA": folder, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        import django  # noqa: PLC0415  the settings read the environment set above
        from django.core.management import call_command  # noqa: PLC0415

        django.setup()
        call_command("migrate", verbosity=0)
        client = _sign_in()
        middles = {}
        for size in SIZES:
            _fill(size)
            middles[size] = {name: _time(client, address) for name, address in FILTERS.items()}
        missed = [*_print_times(middles), *_print_bytes(client)]
    sys.exit(1 if missed else 0)


def _sign_in() -> Any:
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(User.objects.create_superuser("bench"))
    return client


def _fill(size: int) -> None:
    """The first tools of the file, as a worker would have them: stored, decided and indexed."""
    from catalog.access.actors import COMMAND_LINE  # noqa: PLC0415
    from catalog.services import derived_state, snapshots  # noqa: PLC0415

    path = DATA / "catalog-10k" / "tools.jsonl"
    by_server: dict[str, list[dict[str, Any]]] = {}
    with path.open(encoding="utf-8") as lines:
        for line in itertools.islice(lines, size):
            definition = json.loads(line)
            by_server.setdefault(definition.pop("server"), []).append(definition)
    snapshots.import_snapshots(definitions_by_server=by_server, actor=COMMAND_LINE)
    derived_state.bring_up_to_date()


@dataclass(frozen=True, slots=True)
class Took:
    """In milliseconds: by the clock, and of the processor."""

    clock: float
    processor: float


def _time(client: Any, address: str) -> Took:
    client.get(address)
    rounds = [_once(client, address) for _ in range(ROUNDS)]
    return Took(median(took.clock for took in rounds), median(took.processor for took in rounds))


def _once(client: Any, address: str) -> Took:
    started, spent = time.perf_counter(), time.process_time()
    response = client.get(address)
    took = Took((time.perf_counter() - started) * 1000, (time.process_time() - spent) * 1000)
    assert response.status_code == 200, address
    return took


def _print_times(middles: dict[int, dict[str, Took]]) -> list[str]:
    """Gives the names of those that are too far apart."""
    few, many = SIZES
    missed = []
    heads = (f"{few:,} tools", f"{many:,} tools", "apart ms", "of processor")
    print(f"{'Tools page':<24}" + "".join(f"{head:>14}" for head in heads))
    for name in FILTERS:
        small, large = middles[few][name], middles[many][name]
        apart = large.clock - small.clock
        verdict = f"  more than {MOST_MS_APART}" if apart > MOST_MS_APART else ""
        missed += [name] if verdict else []
        numbers = (small.clock, large.clock, apart, large.processor - small.processor)
        print(f"{name:<24}" + "".join(f"{number:>14.1f}" for number in numbers) + verdict)
    return missed


def _print_bytes(client: Any) -> list[str]:
    """Gives the names of those that are too large."""
    missed = []
    print(f"\n{'Page, 10,000 tools':<24}{'bytes':>14}{'gzip bytes':>14}{'ms':>12}")
    for name, address in _pages():
        started = time.perf_counter()
        response = client.get(address)
        elapsed = (time.perf_counter() - started) * 1000
        assert response.status_code == 200, address
        sent = len(gzip.compress(response.content, 6))
        verdict = "" if sent <= MOST_BYTES else f"  more than {MOST_BYTES:,}"
        missed += [name] if verdict else []
        print(f"{name:<24}{len(response.content):>14,}{sent:>14,}{elapsed:>12.1f}{verdict}")
    return missed


def _pages() -> Iterator[tuple[str, str]]:
    """Every page by its address; the server and the tool are the largest there are."""
    from catalog.models import Server, Tool  # noqa: PLC0415

    tool = Tool.objects.order_by("-chars")[0]
    server = Server.objects.order_by("name")[0]
    yield from {
        "overview": "/",
        "servers": "/servers/",
        "a server": server.get_absolute_url(),
        "add servers": "/add-server/",
        "tools": "/tools/",
        "largest tool": tool.get_absolute_url(),
        "who loaded it": f"{tool.get_absolute_url()}sessions/",
        "edit every tool": "/bulk-edit/?all=1",
        "policies": "/policies/",
        "a policy": "/policies/default/",
        "its editor": "/policies/default/edit/",
        "what its agents get": "/policies/default/agent/",
        "new policy": "/new-policy/",
        "sessions": "/sessions/",
        "test console": "/console/?q=create+an+issue",
        "saved queries": "/console/saved/",
        "review": "/review/",
        "models": "/models/",
        "system": "/system/",
        "keys": "/keys/",
        "changes": "/changes/",
        "account": "/account/",
    }.items()


if __name__ == "__main__":
    main()
