"""Inputs of the deciding rules: facts of a tool and of a session."""

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.domain.choices import Approval, Kind, Loading
from catalog.domain.sizes import measure_definition

ALWAYS_LOAD_KEY = "anthropic/alwaysLoad"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFacts:
    """One tool of an enabled server. `chars` is None when the definition cannot be measured."""

    name: str  # qualified
    tool: str  # its own name
    server: str
    kind: Kind = Kind.MCP
    chars: int | None = 0
    loading: Loading = Loading.INHERIT
    server_defers: bool | None = None  # the server's deferLoading
    always_load: bool = False  # what the definition's _meta asks for
    should_defer: bool = False
    approval: Approval = Approval.APPROVED  # an agent's own tools need none


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """A session's own values. Where unset, the policy's values apply."""

    context_window: int | None = None
    context_used: int | None = None
    is_past_context_used: bool = False  # it was over on an earlier turn, and stays so until reset
    visible: tuple[tuple[str, ...], ...] = ()  # each list narrows what the policy shows
    loaded: tuple[str, ...] = ()  # what searches loaded, by qualified or bare name


NO_SESSION = SessionFacts()


def asks_always_load(meta: Mapping[str, object] | None) -> bool:
    """Only the JSON value true counts; "true" and 1 do not."""
    return meta is not None and meta.get(ALWAYS_LOAD_KEY) is True


def count_chars(name: str, description: str | None, input_schema: Mapping[str, object] | None) -> int | None:
    """The size of a definition, or None where there is none: NaN in the schema, or nesting without end."""
    try:
        return measure_definition(name, description, input_schema).chars
    except (ValueError, TypeError, RecursionError):
        return None
