"""Measures deciding: all tools of a catalog, and one tool after a change.

Reads `catalog-10k` below TOOLSEARCH_BENCH_DATA (default ../shared/data), or makes up tools without it. Run
from the project's folder: python -m bench.decide
"""

import json
import os
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter

from catalog.domain.choices import Kind, Mode
from catalog.domain.decide import decide, decide_one, measure_safely, prepare_rules
from catalog.domain.facts import ToolFacts, count_chars
from catalog.domain.names import ToolId, name_all
from catalog.domain.policy import Policy
from catalog.domain.thresholds import sum_tools

COUNTS = (100, 1_000, 10_000)
ROUNDS = 15
POLICIES = {
    "mode always": Policy(),
    "mode auto": Policy(mode=Mode.AUTO),
    "auto, globs in 3 lists": Policy(
        mode=Mode.AUTO,
        never_defer=("*read*", "github/*", "get_issue"),
        always_defer=("*delete*", "mcp__*__drop_?"),
        visible=("mcp__*",),
    ),
}


def main() -> None:
    source, tools = load_tools(max(COUNTS))
    print(f"Deciding, {source}; best and median of {ROUNDS} rounds.")
    print(f"{'policy':<24} {'tools':>7} {'best ms':>9} {'median ms':>10} {'one tool µs':>12}")
    for label, policy in POLICIES.items():
        for count in COUNTS:
            best, middle = time_rounds(partial(decide, tools[:count], policy))
            one = time_one_change(tools[:count], policy)
            print(f"{label:<24} {count:>7,} {best * 1e3:>9.2f} {middle * 1e3:>10.2f} {one * 1e6:>12.1f}")


def load_tools(count: int) -> tuple[str, list[ToolFacts]]:
    path = Path(os.environ.get("TOOLSEARCH_BENCH_DATA", "../shared/data"), "catalog-10k", "tools.jsonl")
    if not path.exists():
        return "made-up tools", [make_up_tool(number) for number in range(count)]
    with path.open(encoding="utf-8") as lines:
        definitions = [json.loads(line) for line in islice(lines, count)]
    ids = [ToolId(Kind.MCP, each["server"], each["name"]) for each in definitions]
    names = name_all(ids, reserved={"search_tools"})
    return "catalog-10k", [
        ToolFacts(
            name=names[tool_id],
            tool=tool_id.tool,
            server=tool_id.server,
            chars=count_chars(tool_id.tool, each.get("description"), each.get("inputSchema")),
        )
        for tool_id, each in zip(ids, definitions, strict=True)
    ]


def make_up_tool(number: int) -> ToolFacts:
    server, tool = f"server{number % 100}", f"read_record_{number}"
    return ToolFacts(name=f"mcp__{server}__{tool}", tool=tool, server=server, chars=500 + number % 700)


def time_rounds(work: Callable[[], object]) -> tuple[float, float]:
    seconds = []
    for _ in range(ROUNDS):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return min(seconds), median(seconds)


def time_one_change(tools: list[ToolFacts], policy: Policy) -> float:
    """The sums move by one step and one tool is decided again: what a changed definition costs one policy."""
    tool, totals = tools[0], sum_tools(tools[1:])

    def change_one_tool() -> None:
        moved = totals.with_tool(tool)
        decide_one(tool, prepare_rules(policy, measure_safely(policy, moved)))

    best, _ = time_rounds(change_one_tool)
    return best


if __name__ == "__main__":
    main()
