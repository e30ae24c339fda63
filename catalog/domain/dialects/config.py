"""A parsed configuration file, whatever its dialect."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from catalog.domain.choices import Kind, Transport
from catalog.domain.policy import Policy


class Dialect(StrEnum):
    PIZZAPI = "pizzapi"
    CLAUDE = "claude"
    EVERRUNS = "everruns"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """One server of a file. Arguments, variables, headers and the URL may hold secrets, so `repr` shows none.

    `kind` and `enabled` are None where the file says nothing: existing values or defaults apply.
    """

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    timeout_seconds: int | None = None
    secret_args: tuple[int, ...] = ()  # positions, from 0, that an admin has marked as secret
    defer_loading: bool | None = None
    kind: Kind | None = None
    enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """`policy_changes` are fields for `Policy.change`; None where no dialect was recognised.

    `ignored` are keys that we do not read, by server; `ignored_keys` those beside the servers.
    """

    servers: tuple[ServerEntry, ...]
    policy_changes: Mapping[str, object] | None
    dialect: Dialect | None
    ignored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ignored_keys: tuple[str, ...] = ()

    def changes_for(self, policy: Policy) -> dict[str, object]:
        """The changes to a policy. Everruns' `never_defer` is added to the existing list."""
        changes = dict(self.policy_changes or {})
        added = changes.get("never_defer")
        if isinstance(added, list):
            changes["never_defer"] = list(dict.fromkeys((*policy.never_defer, *added)))
        return changes


@dataclass(frozen=True, slots=True)
class Rendered:
    """A file for export, and the policy fields with other than default values that it cannot express."""

    document: Mapping[str, object]
    left_out: tuple[str, ...]
