"""What a configuration file says, whatever its dialect."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from catalog.domain.choices import Transport


class Dialect(StrEnum):
    PIZZAPI = "pizzapi"
    CLAUDE = "claude"
    EVERRUNS = "everruns"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """One server of a file. Arguments, variables, headers and the URL may hold secrets: `repr` shows none."""

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    defer_loading: bool | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """`policy_changes` are fields for `Policy.change`; None where no mark of a dialect was found."""

    servers: tuple[ServerEntry, ...]
    policy_changes: Mapping[str, object] | None
    dialect: Dialect | None


@dataclass(frozen=True, slots=True)
class Rendered:
    """A file for export, and the policy fields that it cannot carry and that are not at their defaults."""

    document: Mapping[str, object]
    left_out: tuple[str, ...]
