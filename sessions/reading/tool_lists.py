"""The tool list in every form: shared pieces of the offer, and between them what is this session's own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from catalog.domain.sizes import compact_json, tokens_of
from sessions.domain import search_tool
from sessions.domain.columns import Item
from sessions.domain.formats import Discovered, Format, ListForm
from sessions.domain.list_warnings import list_warnings
from sessions.domain.pieces import Piece, Writer
from sessions.reading.offer import Offer, OfferedTool

_FOREIGN_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
_NAMESPACE_CHARS = 64
MCP = ListForm()


@dataclass(frozen=True, slots=True)
class Standing:
    """An offer and what a session has discovered of it, in load order."""

    offer: Offer
    discovered: tuple[OfferedTool, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        found, offer = len(self.discovered), self.offer
        return {
            "total": len(offer.tools),
            "loaded": len(offer.always) + found,
            "deferred": len(offer.deferred) - found,
            "discovered": found,
            "locked": len(offer.locked),
        }

    def tokens(self, form: ListForm = MCP) -> dict[str, int]:
        """What eager loading would put before the model, what this form puts there, and the difference."""
        offer = self.offer
        sent = offer.always_chars + sum(tool.text.chars for tool in self.discovered)
        if form.format is Format.STUB:
            sent += offer.stub_chars - sum(tool.text.stub_chars for tool in self.discovered)
        if offer.is_active:
            own_name = offer.policy.search_tool_name
            sent += len(offer.prompt(search_tool.name_in(form, own_name)))
            sent += 0 if form.is_hosted else search_tool.count_chars(offer.policy)
        full_tokens, sent_tokens = tokens_of(offer.all_chars), tokens_of(sent)
        return {"full": full_tokens, "sent": sent_tokens, "saved": full_tokens - sent_tokens}

    def warnings(self, form: ListForm = MCP) -> list[str]:
        """What an admin should know of this list, in words."""
        tokens = self.tokens(form)
        in_full = len(self.discovered) if form.discovered is Discovered.FULL else 0
        return list_warnings(form, deferred=len(self.offer.deferred) - in_full, **tokens)

    @property
    def deferred_by_server(self) -> dict[str, int]:
        left = self.offer.deferred_by_server.copy()
        left.subtract(tool.text.server for tool in self.discovered)
        return {server: count for server, count in sorted(left.items()) if count > 0}


def render(standing: Standing, form: ListForm, *, session: str | None, version: int) -> Sequence[Piece]:
    """The whole answer as JSON. `form` is not `auto` any more."""
    offer, name = standing.offer, standing.offer.policy.search_tool_name
    writer = Writer()
    head = {
        "session": session,
        "policy": offer.policy.slug,
        "version": version,
        "active": offer.is_active,
        "format": str(form.format),
    }
    writer.add(f'{compact_json(head)[:-1]},"tools":[')
    writer.add_list(write_tools(standing, form))
    writer.add('],"deferred":[')
    writer.add_list(offer.column("deferred", "summary").items(_without(standing.discovered)))
    search = search_tool.define(form, offer.policy) if offer.is_active else None
    prompt = offer.prompt(search_tool.name_in(form, name)) if offer.is_active else ""
    writer.add(f'],"search_tool":{compact_json(search)},"prompt":{compact_json(prompt)},"routes":{{')
    writer.add_list(_write_routes(standing, form))
    tail = {
        "counts": standing.counts,
        "tokens": standing.tokens(form),
        "warnings": standing.warnings(form),
    }
    writer.add(f"}},{compact_json(tail)[1:]}")
    return writer.finish()


def write_tools(standing: Standing, form: ListForm) -> Iterator[Item]:
    """The list itself, entry by entry or many at once; nothing is written before it is asked for."""
    match form.format:
        case Format.ANTHROPIC:
            return _write_anthropic(standing, form)
        case Format.OPENAI if form.is_hosted and standing.offer.is_active:
            return _write_namespaces(standing, form)
        case Format.OPENAI:
            return _write_openai(standing, form)
        case Format.STUB:
            return _write_stubs(standing)
        case _:
            return _write_mcp(standing)


def _write_mcp(standing: Standing) -> Iterator[Item]:
    yield from standing.offer.column("always", "mcp").items()
    yield from (tool.text.write("mcp") for tool in standing.discovered)


def _write_stubs(standing: Standing) -> Iterator[Item]:
    yield from standing.offer.column("always", "mcp").items()
    filled = {tool.name: tool.text.write("mcp") for tool in standing.discovered}
    yield from standing.offer.column("deferred", "stub").items(filled)


def _write_anthropic(standing: Standing, form: ListForm) -> Iterator[Item]:
    """Nothing moves when a tool is discovered: the conversation's references load it, the cache stays."""
    offer = standing.offer
    if offer.is_active:
        yield compact_json(search_tool.define(form, offer.policy))
    yield from offer.column("always", "anthropic").items()
    in_full = _in_full(standing, form)
    yield from (tool.text.write("anthropic") for tool in in_full)
    yield from offer.column("deferred", "anthropic_deferred").items(_without(in_full))


def _write_openai(standing: Standing, form: ListForm) -> Iterator[Item]:
    offer = standing.offer
    if offer.is_active:
        yield compact_json(search_tool.define(form, offer.policy))
    yield from offer.column("always", "openai").items()
    yield from (tool.text.write("openai") for tool in _in_full(standing, form))


def _write_namespaces(standing: Standing, form: ListForm) -> Iterator[Item]:
    yield compact_json(search_tool.define(form, standing.offer.policy))
    in_full = {tool.name for tool in _in_full(standing, form)}
    taken: set[str] = set()
    for server, tools in standing.offer.by_server.items():
        functions = (
            tool.text.write("openai_deferred" if tool.is_deferred and tool.name not in in_full else "openai")
            for tool in tools
        )
        head = {
            "type": "namespace",
            "name": _name_namespace(server, taken),
            "description": standing.offer.servers.get(server) or f"Tools of {server}.",
        }
        yield f'{compact_json(head)[:-1]},"tools":[{",".join(functions)}]}}'


def _name_namespace(server: str, taken: set[str]) -> str:
    name = _FOREIGN_CHARACTER.sub("_", server)[:_NAMESPACE_CHARS]
    number = 1
    while name in taken:
        number += 1
        ending = f"_{number}"
        name = name[: _NAMESPACE_CHARS - len(ending)] + ending
    taken.add(name)
    return name


def _write_routes(standing: Standing, form: ListForm) -> Iterator[Item]:
    """For the tools in the list, whatever their form."""
    offer = standing.offer
    yield from offer.column("always", "route").items()
    lists_all = form.format in {Format.ANTHROPIC, Format.STUB} or form.is_hosted
    if lists_all:
        yield from offer.column("deferred", "route").items()
    elif form.format is Format.MCP:
        yield from (tool.text.write("route") for tool in standing.discovered)
    else:
        yield from (tool.text.write("route") for tool in _in_full(standing, form))


def _in_full(standing: Standing, form: ListForm) -> tuple[OfferedTool, ...]:
    return standing.discovered if form.discovered is Discovered.FULL else ()


def _without(tools: Sequence[OfferedTool]) -> Mapping[str, str]:
    return {tool.name: "" for tool in tools}
