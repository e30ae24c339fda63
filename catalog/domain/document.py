"""The document of `manage.py decide`: a policy, servers with their tools, a session."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from catalog.domain.choices import Approval, Kind, Loading
from catalog.domain.dialects.servers import parse_defer_loading
from catalog.domain.errors import InvalidInput
from catalog.domain.facts import SessionFacts, ToolFacts, asks_always_load, count_chars
from catalog.domain.limits import COUNT
from catalog.domain.names import ToolId, name_all
from catalog.domain.policy import Policy
from catalog.domain.problems import Problems, join_place, snake_case
from catalog.domain.values import (
    BadValueError,
    name_type,
    read_choice,
    read_flag,
    read_globs,
    read_text,
    read_text_list,
    read_whole_number,
)

_PARTS = ("policy", "servers", "session")
_SESSION_FIELDS = ("context_window", "context_used", "loaded", "visible")
_read_window = partial(read_whole_number, least=1, most=COUNT)
_read_used = partial(read_whole_number, least=0, most=10**12)


@dataclass(frozen=True, slots=True)
class DecideDocument:
    policy: Policy
    tools: tuple[ToolFacts, ...]
    session: SessionFacts


def parse_document(document: object) -> DecideDocument:
    """Read parsed JSON. Raises InvalidInput with every mistake and its place.

    An unknown field is a mistake, except in servers and tools: they may carry more than deciding needs.
    """
    if not isinstance(document, Mapping):
        raise InvalidInput.at("", f"the document must be an object, not {name_type(document)}")
    problems = Problems()
    _refuse_unknown(document, _PARTS, "", problems)
    policy = _parse_policy(document.get("policy"), problems)
    tools = tuple(_parse_servers(document.get("servers"), problems))
    session = _parse_session(document.get("session"), problems)
    problems.raise_if_any()
    return DecideDocument(policy, _give_names(tools, policy), session)


def _parse_policy(value: object, problems: Problems) -> Policy:
    try:
        return Policy.from_mapping(problems.read_object("policy", value))
    except InvalidInput as error:
        problems.add_all(error)
        return Policy()


def _parse_session(value: object, problems: Problems) -> SessionFacts:
    given = problems.read_object("session", value)
    _refuse_unknown(given, _SESSION_FIELDS, "session", problems)
    visible = problems.read_key("session", given, "visible", read_globs)
    return SessionFacts(
        context_window=problems.read_key("session", given, "contextWindow", _read_window),
        context_used=problems.read_key("session", given, "contextUsed", _read_used),
        loaded=problems.read_key("session", given, "loaded", read_text_list) or (),
        visible=() if visible is None else (visible,),
    )


def _parse_servers(value: object, problems: Problems) -> Iterator[ToolFacts]:
    """The tools of all enabled servers, without their qualified names yet."""
    for name, given in problems.read_object("servers", value).items():
        place = join_place("servers", name)
        server = problems.read_object(place, given)
        template = ToolFacts(
            name="",
            tool="",
            server=name,
            kind=problems.read_key(place, server, "kind", partial(read_choice, choices=Kind)) or Kind.MCP,
            server_defers=parse_defer_loading(server, place, problems),
        )
        tools = list(_parse_tools(server.get("tools"), template, join_place(place, "tools"), problems))
        if problems.read_key(place, server, "enabled", read_flag) is not False:
            yield from tools


def _parse_tools(value: object, template: ToolFacts, place: str, problems: Problems) -> Iterator[ToolFacts]:
    seen: set[str] = set()
    for index, given in enumerate(problems.read(place, value, _read_list, [])):
        tool_place = join_place(place, index)
        tool = _parse_tool(problems.read_object(tool_place, given), template, tool_place, problems)
        if not tool.tool:
            problems.add(join_place(tool_place, "name"), "is missing")
        elif tool.tool in seen:
            problems.add(join_place(tool_place, "name"), "is given twice")
        seen.add(tool.tool)
        yield tool


def _parse_tool(
    given: Mapping[str, object], template: ToolFacts, place: str, problems: Problems
) -> ToolFacts:
    name = problems.read_key(place, given, "name", read_text) or ""
    description = problems.read_key(place, given, "description", read_text)
    schema = problems.read_key(place, given, "inputSchema", _read_object)
    loading = problems.read_key(place, given, "loading", partial(read_choice, choices=Loading))
    approval = problems.read_key(place, given, "approval", partial(read_choice, choices=Approval))
    return replace(
        template,
        tool=name,
        chars=count_chars(name, description, schema),
        loading=loading or Loading.INHERIT,
        always_load=asks_always_load(problems.read_key(place, given, "_meta", _read_object)),
        should_defer=problems.read_key(place, given, "shouldDefer", read_flag) is True,
        approval=approval or Approval.APPROVED,
    )


def _give_names(tools: tuple[ToolFacts, ...], policy: Policy) -> tuple[ToolFacts, ...]:
    ids = [ToolId(tool.kind, tool.server, tool.tool) for tool in tools]
    names = name_all(ids, reserved={policy.search_tool_name})
    return tuple(replace(tool, name=names[tool_id]) for tool, tool_id in zip(tools, ids, strict=True))


def _refuse_unknown(
    given: Mapping[str, object], known: tuple[str, ...], place: str, problems: Problems
) -> None:
    for key in given:
        if snake_case(key) not in known:
            problems.add(join_place(place, key), f"is not one of {', '.join(known)}")


def _read_list(value: object) -> list[object]:
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise BadValueError(f"must be a list, not {name_type(value)}")


def _read_object(value: object) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    raise BadValueError(f"must be an object, not {name_type(value)}")
