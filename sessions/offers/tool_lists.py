"""Renders the tool list in every format: shared pieces of the offer, and between them the session's own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from catalog.domain.sizes import ListTokens, compact_json, measure_list
from sessions.offers.offer import Offer, OfferedTool
from sessions.offers.rendering import search_tool
from sessions.offers.rendering.columns import Item
from sessions.offers.rendering.formats import Discovered, Format, ListForm
from sessions.offers.rendering.list_warnings import list_warnings
from sessions.offers.rendering.pieces import Piece, PieceWriter

_FOREIGN_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
_NAMESPACE_CHARS = 64
MCP = ListForm()


@dataclass(frozen=True, slots=True)
class ResolvedTools:
    """An offer and the tools that a session has discovered in it, in load order."""

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

    def measure(self, form: ListForm = MCP) -> ListTokens:
        """What an agent pays for the list in this format. Every page, preview and response shows this."""
        offer = self.offer
        sent = offer.always_chars + sum(tool.text.chars for tool in self.discovered)
        if form.format is Format.STUB:
            sent += offer.stub_chars - sum(tool.text.stub_chars for tool in self.discovered)
        if not offer.is_active:
            return measure_list(all_chars=offer.all_chars, tool_chars=sent)
        own_name = offer.policy.search_tool_name
        return measure_list(
            all_chars=offer.all_chars,
            tool_chars=sent,
            search_tool_chars=0 if form.is_hosted else search_tool.count_search_tool_chars(offer.policy),
            prompt_chars=len(offer.prompt(search_tool.name_in(form, own_name))),
        )

    def tokens(self, form: ListForm = MCP) -> dict[str, int]:
        """Tokens of eager loading, of this format, and the difference."""
        return self.measure(form).to_mapping()

    def warnings(self, form: ListForm = MCP) -> list[str]:
        """Warnings for the admin."""
        tokens = self.tokens(form)
        in_full = len(self.discovered) if form.discovered is Discovered.FULL else 0
        return list_warnings(form, deferred=len(self.offer.deferred) - in_full, **tokens)

    @property
    def deferred_by_server(self) -> dict[str, int]:
        left = self.offer.deferred_by_server.copy()
        left.subtract(tool.text.server for tool in self.discovered)
        return {server: count for server, count in sorted(left.items()) if count > 0}


def render_tool_list(
    resolved: ResolvedTools, form: ListForm, *, session: str | None, version: int
) -> Sequence[Piece]:
    """The whole list as JSON. `form` must not be `auto`."""
    offer, name = resolved.offer, resolved.offer.policy.search_tool_name
    writer = PieceWriter()
    head = {
        "session": session,
        "policy": offer.policy.slug,
        "version": version,
        "active": offer.is_active,
        "format": str(form.format),
    }
    writer.add(f'{compact_json(head)[:-1]},"tools":[')
    writer.add_list(write_tools(resolved, form))
    writer.add('],"deferred":[')
    writer.add_list(offer.column("deferred", "summary").items(_without(resolved.discovered)))
    search = search_tool.define(form, offer.policy) if offer.is_active else None
    prompt = offer.prompt(search_tool.name_in(form, name)) if offer.is_active else ""
    writer.add(f'],"search_tool":{compact_json(search)},"prompt":{compact_json(prompt)},"routes":{{')
    writer.add_list(_write_routes(resolved, form))
    tail = {
        "counts": resolved.counts,
        "tokens": resolved.tokens(form),
        "warnings": resolved.warnings(form),
    }
    writer.add(f"}},{compact_json(tail)[1:]}")
    return writer.finish()


def write_tools(resolved: ResolvedTools, form: ListForm) -> Iterator[Item]:
    """The entries of the list, one by one or in chunks, rendered lazily."""
    match form.format:
        case Format.ANTHROPIC:
            return _write_anthropic(resolved, form)
        case Format.OPENAI if form.is_hosted and resolved.offer.is_active:
            return _write_namespaces(resolved, form)
        case Format.OPENAI:
            return _write_openai(resolved, form)
        case Format.STUB:
            return _write_stubs(resolved)
        case _:
            return _write_mcp(resolved)


def _write_mcp(resolved: ResolvedTools) -> Iterator[Item]:
    yield from resolved.offer.column("always", "mcp").items()
    yield from (tool.text.write("mcp") for tool in resolved.discovered)


def _write_stubs(resolved: ResolvedTools) -> Iterator[Item]:
    yield from resolved.offer.column("always", "mcp").items()
    filled = {tool.name: tool.text.write("mcp") for tool in resolved.discovered}
    yield from resolved.offer.column("deferred", "stub").items(filled)


def _write_anthropic(resolved: ResolvedTools, form: ListForm) -> Iterator[Item]:
    """Discovered tools stay in place: the conversation's references load them, and the prompt cache stays
    valid.
    """
    offer = resolved.offer
    if offer.is_active:
        yield compact_json(search_tool.define(form, offer.policy))
    yield from offer.column("always", "anthropic").items()
    in_full = _in_full(resolved, form)
    yield from (tool.text.write("anthropic") for tool in in_full)
    yield from offer.column("deferred", "anthropic_deferred").items(_without(in_full))


def _write_openai(resolved: ResolvedTools, form: ListForm) -> Iterator[Item]:
    offer = resolved.offer
    if offer.is_active:
        yield compact_json(search_tool.define(form, offer.policy))
    yield from offer.column("always", "openai").items()
    yield from (tool.text.write("openai") for tool in _in_full(resolved, form))


def _write_namespaces(resolved: ResolvedTools, form: ListForm) -> Iterator[Item]:
    yield compact_json(search_tool.define(form, resolved.offer.policy))
    in_full = {tool.name for tool in _in_full(resolved, form)}
    taken: set[str] = set()
    for server, tools in resolved.offer.by_server.items():
        functions = (
            tool.text.write("openai_deferred" if tool.is_deferred and tool.name not in in_full else "openai")
            for tool in tools
        )
        head = {
            "type": "namespace",
            "name": _name_namespace(server, taken),
            "description": resolved.offer.servers.get(server) or f"Tools of {server}.",
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


def _write_routes(resolved: ResolvedTools, form: ListForm) -> Iterator[Item]:
    """For every tool in the list, whatever its form."""
    offer = resolved.offer
    yield from offer.column("always", "route").items()
    lists_all = form.format in {Format.ANTHROPIC, Format.STUB} or form.is_hosted
    if lists_all:
        yield from offer.column("deferred", "route").items()
    elif form.format is Format.MCP:
        yield from (tool.text.write("route") for tool in resolved.discovered)
    else:
        yield from (tool.text.write("route") for tool in _in_full(resolved, form))


def _in_full(resolved: ResolvedTools, form: ListForm) -> tuple[OfferedTool, ...]:
    return resolved.discovered if form.discovered is Discovered.FULL else ()


def _without(tools: Sequence[OfferedTool]) -> Mapping[str, str]:
    return {tool.name: "" for tool in tools}
