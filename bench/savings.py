"""What deferral saves, in tokens on every turn: the whole catalog loaded, beside each way of deferring it.

    python -m bench.savings

On the demo catalog and on the first tools of `catalog-10k` below TOOLSEARCH_BENCH_DATA. `stub` sends names
and descriptions with empty schemas; `index` our search tool and a prompt that names and describes every tool;
`mcp` our search tool and the default prompt. Each number is the contract's: a quarter of the characters put
in front of the model. Exits 1 when a saving that the seeds claim is not beaten on comparable input.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from catalog.domain.choices import PromptStyle
from catalog.domain.definitions import Definition
from catalog.domain.policy import Policy
from catalog.domain.prompt import DeferredServer, DeferredTool, first_sentence, write_prompt
from catalog.domain.sizes import tokens_of
from sessions.domain import search_tool
from sessions.domain.wire import STUB_SCHEMA

DATA = Path(os.environ.get("TOOLSEARCH_BENCH_DATA", "../shared/data"))
DEMO = Path(__file__).resolve().parent.parent / "catalog" / "demo" / "servers"
SIZES = (19, 100, 150, 1_000, 10_000)
UNLIMITED_TOKENS = 10**9

Tool = tuple[str, Definition]  # its server beside it


@dataclass(frozen=True, slots=True)
class Costs:
    tools: int
    full: int
    stub: int
    index: int
    mcp: int

    def saving(self, form: str) -> float:
        sent: int = getattr(self, form)
        return 1 - sent / self.full


@dataclass(frozen=True, slots=True)
class Claim:
    """What a system of the seeds says it saves, and the row and form of ours that compare with it."""

    says: str
    saving: float
    row: str
    form: str


CLAIMS = (
    Claim("stubs, 19 tools: 39%", 0.39, "first 19", "stub"),
    Claim("an index of names and descriptions, 77,000 to 8,700 tokens: 89%", 0.89, "first 150", "index"),
    Claim("147 deferred tools, 90,000 to 15,000 tokens: 83%", 0.83, "first 150", "index"),
)


def main() -> int:
    rows = {"demo": measure(read_demo())} | {f"first {size:,}": measure(read_first(size)) for size in SIZES}
    print(
        f"{'catalog':<14}{'tools':>8}{'full':>12}{'stub':>12}{'saved':>7}{'index':>12}{'saved':>7}{'mcp':>8}{'saved':>7}"
    )
    for name, costs in rows.items():
        cells = "".join(
            f"{getattr(costs, form):>{width},}{costs.saving(form):>7.1%}"
            for form, width in (("stub", 12), ("index", 12), ("mcp", 8))
        )
        print(f"{name:<14}{costs.tools:>8,}{costs.full:>12,}{cells}")
    return sum(not report(claim, rows[claim.row]) for claim in CLAIMS) and 1


def report(claim: Claim, costs: Costs) -> bool:
    ours = costs.saving(claim.form)
    is_beaten = ours > claim.saving
    verdict = "beaten" if is_beaten else "NOT BEATEN"
    print(f"{verdict}: {claim.says}; ours {ours:.1%} as `{claim.form}` on {claim.row} tools of catalog-10k")
    return is_beaten


def read_demo() -> list[Tool]:
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(DEMO.glob("*.json"))]
    return [
        (document["server"]["name"], Definition.from_wire(wire))
        for document in documents
        for wire in document["tools"]
    ]


def read_first(size: int) -> list[Tool]:
    with (DATA / "catalog-10k" / "tools.jsonl").open(encoding="utf-8") as lines:
        return [_read(json.loads(line)) for line in islice(lines, size)]


def _read(wire: dict[str, Any]) -> Tool:
    return wire.pop("server"), Definition.from_wire(wire)


def measure(tools: Sequence[Tool]) -> Costs:
    """Everything deferred, as the default policy does."""
    policy = Policy()
    search_chars = search_tool.count_chars(policy.search_tool_name)
    servers = list(group(tools))
    prompt = write_prompt(servers, policy)
    everything = replace(
        policy, prompt_style=PromptStyle.NAMES_AND_DESCRIPTIONS, prompt_budget_tokens=UNLIMITED_TOKENS
    )
    stubs = sum(len(tool.name) + len(tool.description) + len(STUB_SCHEMA) for _, tool in tools)
    return Costs(
        tools=len(tools),
        full=tokens_of(sum(tool.size.chars for _, tool in tools)),
        stub=tokens_of(stubs + search_chars + len(prompt)),
        index=tokens_of(search_chars + len(write_prompt(servers, everything))),
        mcp=tokens_of(search_chars + len(prompt)),
    )


def group(tools: Iterable[Tool]) -> Iterable[DeferredServer]:
    for server, members in groupby(sorted(tools, key=lambda tool: tool[0]), key=lambda tool: tool[0]):
        deferred = tuple(
            DeferredTool(f"mcp__{server}__{tool.name}", tool.name, first_sentence(tool.description))
            for _, tool in members
        )
        yield DeferredServer(server, deferred)


if __name__ == "__main__":
    sys.exit(main())
