"""Imports and exports config files of any dialect."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain import destinations, dialects
from catalog.domain.choices import Kind, Transport
from catalog.domain.dialects import Config, Dialect, Rendered, ServerEntry
from catalog.domain.errors import Conflict, InvalidInput, NotFound
from catalog.domain.limits import CONFIG_SERVERS
from catalog.domain.problems import join_place
from catalog.models import Policy, Server
from catalog.models.changes import Subject
from catalog.selectors.facts import read_policy
from catalog.services import edits, policies, servers
from catalog.services.catalog_lock import lock_catalog


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The effect of an import by server name. `policy_changes` holds the fields that get another value.

    Those of `changed` that get another destination are also in `replaced`: that cannot be undone. `ignored`
    are keys of servers that we do not read, `ignored_keys` those beside the servers; `disabled` the servers
    that are disabled after it. `version` is that of the servers and the policy that the plan was made from.
    """

    dialect: Dialect | None
    added: tuple[str, ...]
    changed: tuple[str, ...]
    replaced: tuple[str, ...]
    unchanged: tuple[str, ...]
    policy: str
    policy_changes: Mapping[str, object]
    ignored: Mapping[str, tuple[str, ...]]
    ignored_keys: tuple[str, ...]
    disabled: tuple[str, ...]
    version: str


def import_config(
    *,
    config: Config,
    policy_slug: str,
    actor: actors.Actor,
    dry_run: bool = False,
    left_out: Collection[str] = (),
    precondition: edits.Precondition | None = None,
) -> ImportPlan:
    """Add or update servers and apply search settings to the policy, all or nothing.

    A server is refreshed as soon as a worker is free, unless it is disabled. With `dry_run` nothing is
    stored and no lock is waited for. `left_out` names fields of the servers that the caller filled in as they
    are shown. Raises OutdatedEdit where the servers or the policy have changed since the plan.
    """
    actors.require(actor, Role.EDITOR)
    if len(config.servers) > CONFIG_SERVERS:
        told = f"has {len(config.servers)} servers, at most {CONFIG_SERVERS} can be imported at once"
        raise InvalidInput.at("mcpServers", told)
    if dry_run:
        return _make_plan(config, _find_policy(policy_slug), actor, left_out).plan
    with lock_catalog():
        policy = _find_policy(policy_slug)
        made = _make_plan(config, policy, actor, left_out)
        edits.require_current(made.read, precondition)
        for entry in made.entries:
            _store(entry, made.known.get(entry.name), actor)
        if made.plan.policy_changes:
            policies.change_policy(policy=policy, changed=made.plan.policy_changes, actor=actor)
    return made.plan


def add_servers(*, config: Config, policy_slug: str, actor: actors.Actor) -> ImportPlan:
    """Import servers whose names are all new. Raises Conflict where one is taken."""
    with lock_catalog():
        taken = Server.objects.filter(name__in=[one.name for one in config.servers]).first()
        if taken is not None:
            raise Conflict(f"There is a server named {taken.name} already.")
        return import_config(config=config, policy_slug=policy_slug, actor=actor)


def merge_server(*, given: ServerEntry, actor: actors.Actor, left_out: Collection[str] = ()) -> ServerEntry:
    """One server as an import would store it: stored secrets in place of masked ones, everything checked.

    Stores nothing. Raises InvalidInput and NotAllowed as an import does.
    """
    actors.require(actor, Role.EDITOR)
    servers.refuse_names({given.name: join_place("mcpServers", given.name)})
    known = Server.objects.filter(name=given.name).first()
    stored = servers.try_read_entry(known) if known else None
    kept = _keep_secrets(given, stored, left_out, with_path=actor.role < Role.ADMIN)
    entry = _fill_in(kept, known)
    servers.check_entry(entry=entry, server=known, actor=actor)
    return entry


@lock_catalog()
def edit_server(
    *,
    server: Server,
    given: ServerEntry | None,
    description: str,
    kind: Kind,
    actor: actors.Actor,
    if_unchanged: edits.Precondition | None = None,
) -> bool:
    """Change what was given of a server; `given` is None where its address stays.

    True where the server is asked for its tools again. Raises OutdatedEdit where the precondition does not
    hold, InvalidInput and NotAllowed as an import does.
    """
    actors.require(actor, Role.EDITOR)
    row = Server.objects.select_for_update().get(pk=server.pk)
    description = " ".join(description.split())
    wanted: dict[str, object] = {"description": description, "kind": str(kind)}
    try:
        merged = merge_server(given=given, actor=actor) if given else None
    except InvalidInput:
        # Perhaps only because the address was changed meanwhile: then that is what is to be told.
        wanted |= servers.edited_settings(given) if given else {}
        servers.require_current_server(server=row, if_unchanged=if_unchanged, wanted=wanted)
        raise
    if merged:
        merged = replace(merged, defer_loading=row.defer_loading)
        wanted |= servers.edited_settings(merged)
    servers.require_current_server(server=row, if_unchanged=if_unchanged, wanted=wanted)
    is_moved = merged is not None and merged != servers.try_read_entry(row)
    if merged and is_moved:
        servers.store_entry(entry=merged, actor=actor)
    servers.set_kind(server=row, kind=kind, actor=actor)
    servers.set_description(server=row, description=description, actor=actor)
    return is_moved and row.enabled


@dataclass(frozen=True, slots=True)
class _MadePlan:
    """A plan with what it takes to carry it out. `read` is what it was made from."""

    plan: ImportPlan
    entries: tuple[ServerEntry, ...]
    known: Mapping[str, Server]
    read: edits.EditedRow


def _make_plan(config: Config, policy: Policy, actor: actors.Actor, left_out: Collection[str]) -> _MadePlan:
    servers.refuse_names({one.name: join_place("mcpServers", one.name) for one in config.servers})
    known = {
        server.name: server for server in Server.objects.filter(name__in=[one.name for one in config.servers])
    }
    stored = {name: servers.try_read_entry(server) for name, server in known.items()}
    with_path = actor.role < Role.ADMIN
    merged = [
        _fill_in(
            _keep_secrets(entry, stored.get(entry.name), left_out, with_path=with_path), known.get(entry.name)
        )
        for entry in config.servers
    ]
    for entry in merged:
        servers.check_entry(entry=entry, server=known.get(entry.name), actor=actor)
    changed = [one for one in merged if one.name in known and stored[one.name] != one]
    added = [one for one in merged if one.name not in known]
    moved = {one.name for one in (*added, *changed)}
    read = _describe_read(policy, [one.name for one in merged], known)
    plan = ImportPlan(
        dialect=config.dialect,
        added=tuple(one.name for one in added),
        changed=tuple(one.name for one in changed),
        replaced=tuple(one.name for one in changed if _is_replaced(one, stored[one.name])),
        unchanged=tuple(one.name for one in merged if one.name not in moved),
        policy=policy.slug,
        policy_changes=_differing(policy, config),
        ignored=config.ignored,
        ignored_keys=config.ignored_keys,
        disabled=tuple(one.name for one in merged if not one.enabled),
        version=edits.encode_version(read.present),
    )
    return _MadePlan(plan, (*added, *changed), known, read)


def _describe_read(policy: Policy, names: Sequence[str], known: Mapping[str, Server]) -> edits.EditedRow:
    versions: dict[str, object] = {
        f"server {name}": servers.version_of(known[name]) if name in known else "" for name in names
    }
    versions[f"policy {policy.slug}"] = policy.version
    return edits.EditedRow(Subject.SERVER, "what the plan was made from", present=versions, shown={})


def export_config(
    *, dialect: Dialect, policy_slug: str, actor: actors.Actor, secrets: bool = False
) -> Rendered:
    """The catalog's servers and a policy as a file. Secrets are `${NAME}` references unless an admin asks."""
    actors.require(actor, Role.ADMIN if secrets else Role.VIEWER)
    policy = read_policy(_find_policy(policy_slug))
    entries = [servers.read_entry(server) for server in Server.objects.exclude(transport=Transport.SNAPSHOT)]
    return dialects.render_config(dialect, entries, policy, secrets=secrets)


def _fill_in(entry: ServerEntry, known: Server | None) -> ServerEntry:
    """Fields that the file leaves out keep their values or take defaults."""
    kind = entry.kind or (Kind(known.kind) if known else Kind.MCP)
    was_enabled = known.enabled if known else True
    return replace(entry, kind=kind, enabled=was_enabled if entry.enabled is None else entry.enabled)


def _store(entry: ServerEntry, known: Server | None, actor: actors.Actor) -> None:
    """Sets `enabled` first: a server that the file disables must not be refreshed."""
    if known is not None:
        assert entry.kind is not None
        assert entry.enabled is not None
        servers.set_enabled(server=known, enabled=entry.enabled, actor=actor)
        servers.set_kind(server=known, kind=entry.kind, actor=actor)
    servers.store_entry(entry=entry, actor=actor)


def _find_policy(slug: str) -> Policy:
    policy = Policy.objects.filter(slug=slug).first()
    if policy is None:
        raise NotFound(f"there is no policy {slug}")
    return policy


def _keep_secrets(
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
