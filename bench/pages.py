"""What the console's pages cost: the Tools page at 100 and 10,000 tools, and every page's bytes compressed.

    python -m bench.pages

Real definitions from TOOLSEARCH_BENCH_DATA, on a database of its own in a temporary folder. Times are of
whole requests inside one process, middle of many; bytes are of the page as gzip sends it, assets aside.
"""

import gzip
import itertools
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

SIZES = (100, 10_000)
ROUNDS = 30
MOST_MS_APART = 150
MOST_BYTES = 300_000
FILTERS = {
    "as it opens": "/tools/",
    "a word": "/tools/?q=search",
    "deferred": "/tools/?decision=defer",
    "by name, page 2": "/tools/?sort=name&page=2",
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
            middles[size] = {name: _time_ms(client, address) for name, address in FILTERS.items()}
        _print_times(middles)
        _print_bytes(client)


def _sign_in() -> Any:
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(User.objects.create_superuser("bench"))
    return client


def _fill(size: int) -> None:
    """The first tools of the file, as a worker would have them: stored, decided and indexed."""
    from django.conf import settings  # noqa: PLC0415

    from catalog.services import followers, snapshots  # noqa: PLC0415
    from catalog.services.changes import COMMAND_LINE  # noqa: PLC0415

    path = Path(settings.BENCH_DATA) / "catalog-10k" / "tools.jsonl"
    by_server: dict[str, list[dict[str, Any]]] = {}
    with path.open(encoding="utf-8") as lines:
        for line in itertools.islice(lines, size):
            definition = json.loads(line)
            by_server.setdefault(definition.pop("server"), []).append(definition)
    snapshots.import_snapshots(definitions_by_server=by_server, actor=COMMAND_LINE)
    followers.bring_up_to_date()


def _time_ms(client: Any, address: str) -> float:
    client.get(address)
    return median(_once_ms(client, address) for _ in range(ROUNDS))


def _once_ms(client: Any, address: str) -> float:
    started = time.perf_counter()
    response = client.get(address)
    elapsed = (time.perf_counter() - started) * 1000
    assert response.status_code == 200, address
    return elapsed


def _print_times(middles: dict[int, dict[str, float]]) -> None:
    few, many = SIZES
    print(f"{'Tools page':<24}{f'{few:,} tools':>14}{f'{many:,} tools':>14}{'apart ms':>12}")
    for name in FILTERS:
        apart = middles[many][name] - middles[few][name]
        verdict = "" if apart <= MOST_MS_APART else f"  more than {MOST_MS_APART}"
        print(f"{name:<24}{middles[few][name]:>14.1f}{middles[many][name]:>14.1f}{apart:>12.1f}{verdict}")


def _print_bytes(client: Any) -> None:
    print(f"\n{'Page, 10,000 tools':<24}{'bytes':>14}{'gzip bytes':>14}{'ms':>12}")
    for name, address in _pages():
        started = time.perf_counter()
        body = client.get(address).content
        elapsed = (time.perf_counter() - started) * 1000
        sent = len(gzip.compress(body, 6))
        verdict = "" if sent <= MOST_BYTES else f"  more than {MOST_BYTES:,}"
        print(f"{name:<24}{len(body):>14,}{sent:>14,}{elapsed:>12.1f}{verdict}")


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
        "edit every tool": "/bulk-edit/?all=1",
        "policies": "/policies/",
        "a policy": "/policies/default/",
        "its editor": "/policies/default/edit/",
        "new policy": "/new-policy/",
        "sessions": "/sessions/",
        "test console": "/console/?q=create+an+issue",
        "keys": "/keys/",
        "changes": "/changes/",
        "account": "/account/",
    }.items()


if __name__ == "__main__":
    main()
