"""Measures what deferral saves in tokens per turn: everything loaded, beside each way of deferring.

    python -m bench.savings

On the demo catalog and on the first tools of `catalog-10k` below TOOLSEARCH_BENCH_DATA. `stub` sends names
and descriptions with empty schemas; `index` our search tool and a prompt that names and describes every tool;
`mcp` our search tool and the default prompt. Each number is the contract's: a quarter of the characters put
in front of the model. `schemas` are the bytes of parameter schemas alone, with stubs in place of the tools'
own; the search tool keeps its schema in both.

Each saving that the seeds claim is compared on input of the size at which it was claimed, and has to be
beaten there; how the same form does at the other sizes is printed beside it. What our default form, `mcp`,
saves has to beat them all at every size. Exits 1 when one of these is missed.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, islice
from pathlib import Path
from typing import Any

from catalog.domain.choices import PromptStyle
from catalog.domain.definitions import Definition
from catalog.domain.policy import Policy
from catalog.domain.prompt import DeferredServer, DeferredTool, first_sentence, write_prompt
from catalog.domain.sizes import compact_json, measure_list, tokens_of
from sessions.offers.rendering import search_tool
from sessions.offers.rendering.wire import STUB_SCHEMA

DATA = Path(os.environ.get("TOOLSEARCH_BENCH_DATA", "../shared/data"))
DEMO = Path(__file__).resolve().parent.parent / "catalog" / "demo" / "servers"
SIZES = (19, 100, 150, 1_000, 10_000)
SEEDS_TOKENS = (77_000, 90_000)  # the catalogs that the seeds measured, in tokens when loaded whole
UNLIMITED_TOKENS = 10**9

Tool = tuple[str, Definition]  # its server beside it


@dataclass(frozen=True, slots=True)
class Costs:
    tools: int
    full: int
    stub: int
    index: int
    mcp: int
    schema_bytes: int
    stub_schema_bytes: int

    def saving(self, form: str) -> float:
        if form == "schemas":
            return 1 - self.stub_schema_bytes / self.schema_bytes
        sent: int = getattr(self, form)
        return 1 - sent / self.full


@dataclass(frozen=True, slots=True)
class Claim:
    """A saving that another system claims, and the form of ours and the size that compare with it."""

    says: str
    saving: float
    row: str
    form: str


CLAIMS = (
    Claim("stubs, 19 tools: 39%", 0.39, "first 19", "stub"),
    Claim("schema bytes of stubs, 19 tools: 55%", 0.55, "first 19", "schemas"),
    Claim("an index of names and descriptions, 77,000 to 8,700 tokens: 89%", 0.89, "77,000 tokens", "index"),
    Claim("147 deferred tools, 90,000 to 15,000 tokens: 83%", 0.83, "90,000 tokens", "index"),
)


def main() -> int:
    rows = {"demo": measure(read_demo())} | {f"first {size:,}": measure(read_first(size)) for size in SIZES}
    rows |= {f"{tokens:,} tokens": measure(read_up_to(tokens)) for tokens in SEEDS_TOKENS}
    print(
        f"{'catalog':<14}{'tools':>8}{'full':>12}{'stub':>12}{'saved':>7}{'index':>12}{'saved':>7}{'mcp':>8}{'saved':>7}"
        f"{'schemas':>12}{'stubs':>12}{'saved':>7}"
    )
    for name, costs in rows.items():
        cells = "".join(
            f"{getattr(costs, form):>{width},}{costs.saving(form):>7.1%}"
            for form, width in (("stub", 12), ("index", 12), ("mcp", 8))
        )
        schemas = f"{costs.schema_bytes:>12,}{costs.stub_schema_bytes:>12,}{costs.saving('schemas'):>7.1%}"
        print(f"{name:<14}{costs.tools:>8,}{costs.full:>12,}{cells}{schemas}")
    missed = sum(not report(claim, rows) for claim in CLAIMS)
    missed += not report_default(rows)
    return 1 if missed else 0


def report(claim: Claim, rows: Mapping[str, Costs]) -> bool:
    ours = rows[claim.row].saving(claim.form)
    is_beaten = ours > claim.saving
    verdict = "beaten" if is_beaten else "NOT BEATEN"
    print(f"{verdict}: {claim.says}; ours {ours:.1%} as `{claim.form}` on {claim.row} of catalog-10k")
    others = {name: costs.saving(claim.form) for name, costs in rows.items() if name != claim.row}
    for holds, words in ((True, "holds too on"), (False, "does not hold on")):
        named = [
            f"{name} ({saving:.1%})" for name, saving in others.items() if (saving > claim.saving) is holds
        ]
        if named:
            print(f"    {words} {', '.join(named)}")
    return is_beaten


def report_default(rows: Mapping[str, Costs]) -> bool:
    """Our own claim: what is sent by default saves more than any seed says, whatever the size."""
    bar = max(claim.saving for claim in CLAIMS)
    least = min(rows, key=lambda name: rows[name].saving("mcp"))
    is_kept = rows[least].saving("mcp") > bar
    verdict = "kept" if is_kept else "NOT KEPT"
    print(f"{verdict}: `mcp`, the default, saves more than {bar:.0%} at every size; least on {least}: "
          f"{rows[least].saving('mcp'):.1%}")  # fmt: skip
    return is_kept


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


def read_up_to(tokens: int) -> list[Tool]:
    """The first tools that together are about so many tokens."""
    tools = read_first(SIZES[-1])
    chars = accumulate(tool.size.chars for _, tool in tools)
    return [tool for tool, so_far in zip(tools, chars, strict=True) if tokens_of(so_far) <= tokens]


def _read(wire: dict[str, Any]) -> Tool:
    return wire.pop("server"), Definition.from_wire(wire)


def measure(tools: Sequence[Tool]) -> Costs:
    """Everything deferred, as the default policy does."""
    policy = Policy()
    search_chars = search_tool.count_search_tool_chars(policy)
    search_bytes = count_bytes(search_tool.schema_for(policy))
    servers = list(group(tools))
    prompt = write_prompt(servers, policy)
    everything = replace(
        policy, prompt_style=PromptStyle.NAMES_AND_DESCRIPTIONS, prompt_budget_tokens=UNLIMITED_TOKENS
    )
    stubs = sum(len(tool.name) + len(tool.description) + len(STUB_SCHEMA) for _, tool in tools)
    default = measure_list(
        all_chars=sum(tool.size.chars for _, tool in tools),
        tool_chars=0,
        search_tool_chars=search_chars,
        prompt_chars=len(prompt),
    )
    return Costs(
        tools=len(tools),
        full=default.full,
        stub=tokens_of(stubs + search_chars + len(prompt)),
        index=tokens_of(search_chars + len(write_prompt(servers, everything))),
        mcp=default.sent,
        schema_bytes=sum(count_bytes(tool.input_schema) for _, tool in tools) + search_bytes,
        stub_schema_bytes=len(STUB_SCHEMA) * len(tools) + search_bytes,
    )


def count_bytes(schema: Mapping[str, Any] | None) -> int:
    return len(compact_json(schema or {}).encode())


def group(tools: Iterable[Tool]) -> Iterable[DeferredServer]:
    for server, members in groupby(sorted(tools, key=lambda tool: tool[0]), key=lambda tool: tool[0]):
        deferred = tuple(
            DeferredTool(f"mcp__{server}__{tool.name}", tool.name, first_sentence(tool.description))
            for _, tool in members
        )
        yield DeferredServer(server, deferred)


if __name__ == "__main__":
    sys.exit(main())
