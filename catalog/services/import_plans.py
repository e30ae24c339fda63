"""Plans of imports: what becomes of each server of a config file, and why."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from django.conf import settings

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain import destinations, dialects, references
from catalog.domain.choices import Kind, Transport
from catalog.domain.dialects import Config, Dialect, RefusedServer, ServerEntry
from catalog.domain.dialects.config import write_reason
from catalog.domain.dialects.secrets import show_target
from catalog.domain.dialects.servers import render_server
from catalog.domain.errors import FieldProblem, InvalidInput, NotAllowed
from catalog.domain.problems import join_place
from catalog.domain.references import ReferenceRules
from catalog.models import Policy, Server
from catalog.models.changes import Subject
from catalog.selectors.facts import read_policy
from catalog.services import edits, servers

_KEYS = {"defer_loading": "deferLoading", "keeps_no_state": "keepsNoState"}
ADMINS_ONLY = "a server that runs a command can be added by admins only"

# A value for a placeholder or variable of one server: by the server's name and the placeholder's.
GivenValues = Mapping[tuple[str, str], str]


class ImportAction(StrEnum):
    ADD = "add"
    UPDATE = "update"
    KEEP = "keep"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class PlannedServer:
    """What an import does with one server of the file, and why.

    `target` is the command line or address, secrets masked; `ignored` are keys that we do not read, `missing`
    values that the file leaves to its user or to the environment. `can_be_mended` is true of a refused server
    that could be added with these values given.
    """

    name: str
    action: ImportAction
    reason: str
    transport: str | None = None
    target: str = ""
    enabled: bool = True
    project: str | None = None
    ignored: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    is_replaced: bool = False
    can_be_mended: bool = False


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The effect of an import by server name. `policy_changes` holds the fields that get another value, and
    `settings` all those that the file sets.

    Those of `changed` that get another destination are also in `replaced`: that cannot be undone. `ignored`
    are keys of servers that we do not read, `ignored_keys` those beside the servers; `disabled` the servers
    that are disabled after it. `version` is that of the servers and the policy that the plan was made from.
    """

    dialect: Dialect | None
    format: str
    servers: tuple[PlannedServer, ...]
    added: tuple[str, ...]
    changed: tuple[str, ...]
    replaced: tuple[str, ...]
    unchanged: tuple[str, ...]
    policy: str
    settings: Mapping[str, object]
    policy_changes: Mapping[str, object]
    ignored: Mapping[str, tuple[str, ...]]
    ignored_keys: tuple[str, ...]
    disabled: tuple[str, ...]
    version: str

    @property
    def moving(self) -> int:
        """How many servers are added or changed."""
        return len(self.added) + len(self.changed)

    @property
    def can_be_imported(self) -> bool:
        """Whether importing it changes anything, or would with the values that are missing."""
        return bool(self.moving or self.policy_changes or any(one.can_be_mended for one in self.servers))

    @property
    def refused(self) -> tuple[PlannedServer, ...]:
        return tuple(one for one in self.servers if one.action is ImportAction.REFUSE)


@dataclass(frozen=True, slots=True)
class MadePlan:
    """A plan with what it takes to carry it out. `read` is what it was made from."""

    plan: ImportPlan
    entries: tuple[ServerEntry, ...]
    refused: tuple[RefusedServer, ...]
    known: Mapping[str, Server]
    read: edits.EditedRow

    def require_some(self) -> None:
        """Raises InvalidInput where every server is refused, or there is nothing to import."""
        if self.refused and len(self.refused) == len(self.plan.servers):
            raise InvalidInput(error for one in self.refused for error in one.errors)
        if not self.plan.servers and not self.plan.settings:
            raise InvalidInput.at("only", "leaves nothing to import: choose at least one server")


@dataclass(frozen=True, slots=True)
class _Judged:
    """A server of the file with what is stored in its place filled in, or why it is refused."""

    entry: ServerEntry
    errors: tuple[FieldProblem, ...] = ()
    can_be_mended: bool = False


def make_plan(
    *, config: Config, policy: Policy, actor: actors.Actor, left_out: Collection[str] = ()
) -> MadePlan:
    """The plan of an import, each server judged by itself."""
    actors.require(actor, Role.EDITOR)
    bad_names = servers.find_refused_names(one.name for one in config.servers)
    names = [one.name for one in config.servers if one.name not in bad_names]
    known = _find_known(config, names)
    stored = {name: servers.try_read_entry(server) for name, server in known.items()}
    judged = {
        entry.name: _judge(entry, known.get(entry.name), stored.get(entry.name), actor, left_out)
        if entry.name not in bad_names
        else _Judged(entry, (FieldProblem(_place_of(entry.name), bad_names[entry.name]),))
        for entry in config.servers
    }
    merged = [one.entry for one in judged.values() if not one.errors]
    changed = [one for one in merged if one.name in known and stored[one.name] != one]
    added = [one for one in merged if one.name not in known]
    moved = {one.name for one in (*added, *changed)}
    refused = [*config.refused, *_name_refused(judged.values(), config)]
    rows = [_plan_row(one, known, stored, config, actor) for one in judged.values() if not one.errors]
    rows += [_plan_refused(one, judged.get(one.name), config, actor) for one in refused]
    order = {name: position for position, name in enumerate(config.order)}
    read = _describe_read(policy, [one.name for one in merged], known)
    plan = ImportPlan(
        dialect=config.dialect,
        format=str(config.format or config.dialect or ""),
        servers=tuple(sorted(rows, key=lambda row: order.get(row.name, 0))),
        added=tuple(one.name for one in added),
        changed=tuple(one.name for one in changed),
        replaced=tuple(one.name for one in changed if _is_replaced(one, stored[one.name])),
        unchanged=tuple(one.name for one in merged if one.name not in moved),
        policy=policy.slug,
        settings=config.changes_for(read_policy(policy)),
        policy_changes=_differing(policy, config),
        ignored=config.ignored,
        ignored_keys=config.ignored_keys,
        disabled=tuple(one.name for one in merged if not one.enabled),
        version=edits.encode_version(read.present),
    )
    return MadePlan(plan, (*added, *changed), tuple(refused), known, read)


def _find_known(config: Config, names: Collection[str]) -> dict[str, Server]:
    """The servers that the file is about. A demo server is one only where the file's is the demo's too: else
    it is replaced by a new one.
    """
    is_demo = {one.name: one.demo for one in config.servers}
    found = Server.objects.filter(name__in=names)
    return {server.name: server for server in found if is_demo[server.name] or not server.demo}


def _judge(
    entry: ServerEntry,
    known: Server | None,
    stored: ServerEntry | None,
    actor: actors.Actor,
    left_out: Collection[str],
) -> _Judged:
    merged = entry
    try:
        kept = keep_stored_secrets(entry, stored, left_out, with_path=actor.role < Role.ADMIN)
        merged = fill_defaults(kept, known)
        servers.check_entry(entry=merged, server=known, actor=actor)
    except InvalidInput as invalid:
        is_by_reference = bool(references.names_of(merged)) and _is_taken_without_references(
            merged, known, actor
        )
        return _Judged(merged, invalid.errors, is_by_reference)
    except NotAllowed:
        return _Judged(merged, (FieldProblem(f"{_place_of(entry.name)}.command", ADMINS_ONLY),))
    return _Judged(merged)


def _is_taken_without_references(entry: ServerEntry, known: Server | None, actor: actors.Actor) -> bool:
    """Whether the server could be stored if values were given in place of its variables."""
    values = dict.fromkeys(references.names_of(entry), "value")
    try:
        servers.check_entry(entry=_fill_placeholders(entry, values), server=known, actor=actor)
    except (InvalidInput, NotAllowed):
        return False
    return True


def _name_refused(judged: Iterable[_Judged], config: Config) -> Iterator[RefusedServer]:
    """Refusals with the places that the file itself has."""
    return (_name_errors(one.entry.name, one.errors, config) for one in judged if one.errors)


def _name_errors(name: str, errors: Iterable[FieldProblem], config: Config) -> RefusedServer:
    usual = _place_of(name)
    place = config.places.get(name, usual)
    moved = (
        FieldProblem(f"{place}{error.place.removeprefix(usual)}".lstrip("."), error.message)
        for error in errors
    )
    return RefusedServer(name, place, tuple(moved))


def _plan_row(
    judged: _Judged,
    known: Mapping[str, Server],
    stored: Mapping[str, ServerEntry | None],
    config: Config,
    actor: actors.Actor,
) -> PlannedServer:
    entry = judged.entry
    before = stored.get(entry.name)
    is_replaced = entry.name in known and _is_replaced(entry, before)
    if entry.name not in known:
        action, reason = ImportAction.ADD, "is new"
    elif before == entry:
        action, reason, is_replaced = ImportAction.KEEP, "is here already, as the file has it", False
    else:
        action, reason = ImportAction.UPDATE, _tell_update(entry, before, is_replaced=is_replaced)
    row = PlannedServer(entry.name, action, reason, is_replaced=is_replaced)
    return _describe_row(row, entry, config, actor)


def _plan_refused(
    refused: RefusedServer, judged: _Judged | None, config: Config, actor: actors.Actor
) -> PlannedServer:
    row = PlannedServer(refused.name, ImportAction.REFUSE, write_reason(refused.errors, refused.place))
    if judged is None:
        project, ignored = config.projects.get(row.name), config.ignored.get(row.name, ())
        return replace(row, project=project, ignored=ignored)
    return _describe_row(replace(row, can_be_mended=judged.can_be_mended), judged.entry, config, actor)


def _describe_row(
    row: PlannedServer, entry: ServerEntry, config: Config, actor: actors.Actor
) -> PlannedServer:
    return replace(
        row,
        transport=str(entry.transport),
        target=show_target(entry),
        enabled=entry.enabled is not False,
        project=config.projects.get(entry.name),
        ignored=config.ignored.get(entry.name, ()),
        missing=_find_missing(entry, actor) if row.action is not ImportAction.KEEP else (),
    )


def _tell_update(entry: ServerEntry, before: ServerEntry | None, *, is_replaced: bool) -> str:
    if before is None:
        return "its stored secrets cannot be read any more: they are replaced"
    if is_replaced:
        return "gets another command or address; its stored secrets are dropped, and this cannot be undone"
    names = (one.name for one in fields(entry) if getattr(entry, one.name) != getattr(before, one.name))
    return f"changes {', '.join(_KEYS.get(name, name) for name in names)}"


def _find_missing(entry: ServerEntry, actor: actors.Actor) -> tuple[str, ...]:
    """Whether a variable is set is told to admins alone, and only of those that servers may use."""
    rules = ReferenceRules(allowed=settings.REFERENCES)

    def is_set(name: str) -> bool:
        may_know = actor.role >= Role.ADMIN and rules.why_refused(name) is None
        return may_know and bool(os.environ.get(name))

    return references.missing_in(entry, is_set)


def give_values(config: Config, values: GivenValues) -> Config:
    """The config with these values in place of placeholders and variables; empty ones count as not given.

    A server that is none any more with its values is refused.
    """
    by_server: dict[str, dict[str, str]] = {}
    for (server, name), value in values.items():
        if value:
            by_server.setdefault(server, {})[name] = value
    kept: list[ServerEntry] = []
    refused = list(config.refused)
    for entry in config.servers:
        filled = _fill_placeholders(entry, by_server.get(entry.name, {}))
        errors = () if filled == entry else _find_errors(filled)
        if errors:
            refused.append(_name_errors(entry.name, errors, config))
        else:
            kept.append(filled)
    return replace(config, servers=tuple(kept), refused=tuple(refused))


def _find_errors(entry: ServerEntry) -> tuple[FieldProblem, ...]:
    try:
        dialects.parse_config({"mcpServers": {entry.name: render_server(entry)}})
    except InvalidInput as invalid:
        return invalid.errors
    return ()


def _fill_placeholders(entry: ServerEntry, values: Mapping[str, str]) -> ServerEntry:
    def fill(text: str) -> str:
        return references.fill_in(text, values)

    return replace(
        entry,
        command=fill(entry.command),
        args=tuple(map(fill, entry.args)),
        cwd=fill(entry.cwd),
        env={name: fill(text) for name, text in entry.env.items()},
        url=fill(entry.url),
        headers={name: fill(text) for name, text in entry.headers.items()},
    )


def _place_of(name: str) -> str:
    return join_place("mcpServers", name)


def _describe_read(policy: Policy, names: Sequence[str], known: Mapping[str, Server]) -> edits.EditedRow:
    versions: dict[str, object] = {
        f"server {name}": servers.version_of(known[name]) if name in known else "" for name in names
    }
    versions[f"policy {policy.slug}"] = policy.version
    return edits.EditedRow(Subject.SERVER, "what the plan was made from", present=versions, shown={})


def fill_defaults(entry: ServerEntry, known: Server | None) -> ServerEntry:
    """Fields that the file leaves out keep their values or take defaults."""
    kind = entry.kind or (Kind(known.kind) if known else Kind.MCP)
    was_enabled = known.enabled if known else True
    enabled = was_enabled if entry.enabled is None else entry.enabled
    has_no_state = known.keeps_no_state if known else False
    return replace(
        entry,
        kind=kind,
        enabled=enabled,
        keeps_no_state=has_no_state if entry.keeps_no_state is None else entry.keeps_no_state,
        demo=known.demo if known else entry.demo,
    )


def keep_stored_secrets(
    entry: ServerEntry, stored: ServerEntry | None, left_out: Collection[str], *, with_path: bool
) -> ServerEntry:
    """A value equal to our own masked export keeps the stored secret, so that exports can be edited."""
    if stored is None or stored.transport == Transport.SNAPSHOT:
        return entry
    return destinations.keep_secrets(entry, stored, left_out=left_out, with_path=with_path)


def _is_replaced(entry: ServerEntry, stored: ServerEntry | None) -> bool:
    """Also true where the stored entry cannot be decrypted any more."""
    return stored is None or not destinations.is_same_destination(entry, stored, with_path=False)


def _differing(policy: Policy, config: Config) -> dict[str, object]:
    before = read_policy(policy)
    after = before.change(config.changes_for(before)).to_mapping()
    return {name: after[name] for name, value in before.to_mapping().items() if after[name] != value}
