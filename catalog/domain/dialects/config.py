"""A parsed configuration file, whatever its dialect and format."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from catalog.domain.choices import Kind, Transport
from catalog.domain.errors import FieldProblem, InvalidInput
from catalog.domain.policy import Policy


class Dialect(StrEnum):
    PIZZAPI = "pizzapi"
    CLAUDE = "claude"
    EVERRUNS = "everruns"


class ConfigFormat(StrEnum):
    """How a file writes its servers."""

    MCP_SERVERS = "mcpServers"
    VSCODE = "vscode"
    ZED = "zed"
    OPENCODE = "opencode"
    CODEX = "codex"
    GOOSE = "goose"
    BARE = "bare"
    LINE = "line"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """One server of a file. Arguments, variables, headers and the URL may hold secrets, so `repr` shows none.

    `kind`, `enabled` and `keeps_no_state` are None where the file says nothing: existing values or defaults
    apply. `demo` is in files that we exported.
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
    keeps_no_state: bool | None = None
    demo: bool = False


@dataclass(frozen=True, slots=True)
class RefusedServer:
    """A server of a file that cannot be imported; the others can. `place` is where the file has it."""

    name: str
    place: str
    errors: tuple[FieldProblem, ...]

    @property
    def reason(self) -> str:
        return write_reason(self.errors, self.place)


@dataclass(frozen=True, slots=True)
class Config:
    """`policy_changes` are fields for `Policy.change`; None where no dialect was recognised.

    `ignored` are keys that we do not read, by server; `ignored_keys` those beside the servers. `places` says
    where the file has each server, `projects` in which project; `order` has all names as the file has them.
    `labels` are the file's own words for values that it asks its user for, by placeholder.
    """

    servers: tuple[ServerEntry, ...]
    policy_changes: Mapping[str, object] | None
    dialect: Dialect | None
    ignored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ignored_keys: tuple[str, ...] = ()
    format: ConfigFormat | None = None
    refused: tuple[RefusedServer, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    projects: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def changes_for(self, policy: Policy) -> dict[str, object]:
        """The changes to a policy. Everruns' `never_defer` is added to the existing list."""
        changes = dict(self.policy_changes or {})
        added = changes.get("never_defer")
        if isinstance(added, list):
            changes["never_defer"] = list(dict.fromkeys((*policy.never_defer, *added)))
        return changes

    def take_only(self, names: Collection[str]) -> "Config":
        """The same with these servers alone. Raises InvalidInput for a name that the file does not have."""
        known = {*(one.name for one in self.servers), *(one.name for one in self.refused)}
        unknown = [name for name in names if name not in known]
        if unknown:
            told = ", ".join(name[:_MAX_NAME_CHARS] for name in unknown[:_MAX_NAMES])
            raise InvalidInput.at("only", f"names what the file does not have: {told}")
        wanted = frozenset(names)
        return replace(
            self,
            servers=tuple(one for one in self.servers if one.name in wanted),
            refused=tuple(one for one in self.refused if one.name in wanted),
            ignored={name: keys for name, keys in self.ignored.items() if name in wanted},
        )


@dataclass(frozen=True, slots=True)
class Rendered:
    """A file for export, and the policy fields with other than default values that it cannot express."""

    document: Mapping[str, object]
    left_out: tuple[str, ...]


_MAX_NAMES = 20
_MAX_NAME_CHARS = 100


def write_reason(errors: Collection[FieldProblem], place: str) -> str:
    """Mistakes of one server in one line, their places as seen from the server."""
    told = (FieldProblem(one.place.removeprefix(place).lstrip("."), one.message) for one in errors)
    return "; ".join(str(one) for one in told)
