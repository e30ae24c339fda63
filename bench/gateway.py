"""Measures the gateway: `python -m bench.gateway [--minutes 5] [--tools 10000] [--calls 600]`, one table.

Beside it stand direct calls, a bare pass-through of the same SDK, FastMCP's proxy, and our own REST. Reads
`catalog-10k` and the queries of `search-quality` below TOOLSEARCH_BENCH_DATA. Exits 1 when a bound is missed.
For a first look, `--minutes 0.5 --tools 1000 --calls 100` takes three minutes.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.gateway_costs import (
    AT_ONCE,
    HTTP_SERVER,
    PIPE_SERVER,
    CallTimes,
    Cost,
    compare_calls,
    compare_lists,
    compare_searches,
    fixture_settings,
    time_calls,
    wait_until_callable,
)
from bench.gateway_instance import Measured, running_measured, running_upstreams
from bench.gateway_load import KillResult, LoadResult, run_kill, run_load
from bench.search_speed import load_queries
from catalog.domain.limits import QUERY_CHARS
from tests.harness.instance import processes_of
from tests.harness.nodes import end_with_all

DATA = Path(os.environ.get("TOOLSEARCH_BENCH_DATA", "../shared/data"))
KEYS, UPSTREAMS = 20, 20
FEW_TOOLS = 100
QUERIES = 300
SHOWN_ERRORS = 5
LOST_SECONDS = 1.5  # the last second, and the time that writing takes


@dataclass(frozen=True, slots=True)
class Bound:
    what: str
    value: float
    most: float

    @property
    def is_kept(self) -> bool:
        return self.value <= self.most


def main() -> None:
    options = read_options()
    end_with_all()
    with tempfile.TemporaryDirectory(prefix="gateway-") as folder:
        with running_upstreams(UPSTREAMS) as urls:
            bounds = measure(Path(folder), urls, options)
        bounds.append(Bound("processes left at the end", len(processes_of(Path(folder) / "many")), 0))
    if not judge(bounds):
        sys.exit(1)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="of the load")
    parser.add_argument("--tools", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=600, help="how many of each kind are measured")
    return parser.parse_args()


def read_tools(count: int) -> list[str]:
    """One tool of each server comes first: however few, the list names as many servers as it has room for."""
    lines = (DATA / "catalog-10k" / "tools.jsonl").read_text(encoding="utf-8").splitlines()
    first = {json.loads(line)["server"]: line for line in reversed(lines)}
    return list(dict.fromkeys([*first.values(), *lines]))[:count]


def measure_lists(many: Measured, data: Path, options: argparse.Namespace) -> list[Cost]:
    """Beside an instance of few tools, which ends with this."""
    labels = [f"tools/list, {count:,} tools" for count in (FEW_TOOLS, options.tools)]
    with running_measured(data, read_tools(FEW_TOOLS), keys=1) as few:
        return asyncio.run(compare_lists(few, many, labels=labels, count=options.calls))


def measure(folder: Path, urls: Sequence[str], options: argparse.Namespace) -> list[Bound]:
    queries = [query[:QUERY_CHARS] for query in load_queries(QUERIES)]
    names = [f"up-{number}" for number in range(len(urls))]
    with running_measured(folder / "many", read_tools(options.tools), keys=KEYS) as measured:
        few, many = measure_lists(measured, folder / "few", options)
        searches = [
            asyncio.run(compare_searches(measured, queries, count=options.calls, at_once=at_once))
            for at_once in (1, AT_ONCE)
        ]
        show_costs([few, many, *(cost for pair in searches for cost in pair)])
        http_servers = {name: fixture_settings(url) for name, url in zip(names, urls, strict=True)}
        measured.add_servers({**http_servers, PIPE_SERVER: fixture_settings()})
        asyncio.run(wait_until_callable(measured, [*names, PIPE_SERVER]))
        times = asyncio.run(time_calls(measured, url=urls[names.index(HTTP_SERVER)], count=options.calls))
        show_times(times)
        ours, theirs = asyncio.run(compare_calls(measured, url=urls[0], count=options.calls))
        show_costs([ours, theirs])
        load = asyncio.run(run_load(measured, names, seconds=options.minutes * 60))
        show_load(load)
        kill = asyncio.run(run_kill(measured, names))
        show_kill(kill)
    return [
        *(Bound(f"call, {one.label}: p50 / pass-through's", one.ratio, 1.5) for one in times),
        Bound("call: processor time / FastMCP proxy's", ours.cpu_ms / theirs.cpu_ms, 0.2),
        *(
            Bound(f"{mine.label}: processor time / REST's", mine.cpu_ms / rest.cpu_ms, 1.5)
            for mine, rest in searches
        ),
        *bounds_of_lists(few, many),
        *bounds_of_load(load, kill),
    ]


def bounds_of_lists(few: Cost, many: Cost) -> list[Bound]:
    return [
        Bound(f"{many.label}: bytes, differs from {FEW_TOOLS} tools", abs(many.bytes / few.bytes - 1), 0.1),
        Bound(f"{many.label}: processor time / of {FEW_TOOLS} tools", many.cpu_ms / few.cpu_ms, 1.1),
    ]


def bounds_of_load(load: LoadResult, kill: KillResult) -> list[Bound]:
    return [
        Bound("load: errors", len(load.errors), 0),
        Bound("load: share of the calls that was not made", 1 - load.served, 0.05),
        Bound("load: memory at the end / once settled", load.growth, 1.1),
        Bound("kill -9: seconds until calls were answered again", kill.away_seconds, 15),
        Bound("kill -9: errors after the restart", len(kill.errors_after), 0),
        Bound("kill -9: errors of the second gateway's clients", len(kill.errors_beside), 0),
        Bound("kill -9: seconds before it that are not recorded", kill.lost_seconds, LOST_SECONDS),
        Bound("kill -9: processes left behind", len(kill.left_behind), 0),
    ]


def show_costs(costs: Sequence[Cost]) -> None:
    print(f"\n{'':44}{'CPU ms':>9}{'bytes':>9}")
    for cost in costs:
        print(f"{cost.label:44}{cost.cpu_ms:>9.2f}{cost.bytes or '':>9}", flush=True)


def show_times(times: Sequence[CallTimes]) -> None:
    print(f"\n{'a call, ms: p50 / p99':28}{'direct':>15}{'pass-through':>15}{'gateway':>15}{'added':>15}")
    for one in times:
        added = (one.gateway[0] - one.direct[0], one.gateway[1] - one.direct[1])
        shown = (f"{p50:.1f} / {p99:.1f}" for p50, p99 in (one.direct, one.passed, one.gateway, added))
        print(f"{one.label:28}{''.join(f'{each:>15}' for each in shown)}", flush=True)


def show_load(load: LoadResult) -> None:
    print(f"\nload: {load.calls:,} calls, p50 {load.p50:.1f} ms, p99 {load.p99:.1f} ms", end=", ")
    settled, last = load.memory_mb
    print(f"{load.cpu_ms:.1f} ms CPU each; memory {settled:.0f} MB, at the end {last:.0f} MB", flush=True)
    for error in load.errors[:SHOWN_ERRORS]:
        print(f"  {error[:200]}")


def show_kill(kill: KillResult) -> None:
    print(f"kill -9: answered again after {kill.away_seconds:.1f} s; {kill.calls} calls answered", end=", ")
    print(f"{kill.recorded} recorded, the others in the last {kill.lost_seconds:.2f} s before", flush=True)
    for error in [*kill.errors_after, *kill.errors_beside, *kill.left_behind][:SHOWN_ERRORS]:
        print(f"  {error[:200]}")


def judge(bounds: Sequence[Bound]) -> bool:
    """Prints each value with its bound; whether all are kept."""
    print()
    for bound in bounds:
        word = "" if bound.is_kept else "  MISSED"
        print(f"{bound.what}: {bound.value:.2f}, at most {bound.most:g}{word}")
    return all(bound.is_kept for bound in bounds)


if __name__ == "__main__":
    main()
