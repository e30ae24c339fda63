"""Imports and exports the config files that people already have, whatever their dialect."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from catalog.access import Role
from catalog.domain import destinations, dialects
from catalog.domain.choices import Kind, Transport
from catalog.domain.dialects import Config, Dialect, Rendered, ServerEntry
from catalog.domain.errors import NotFound
from catalog.domain.problems import join_place
from catalog.models import Policy, Server
from catalog.selectors.facts import read_policy
from catalog.services import changes, policies, server_settings, servers
from catalog.services.writing import catalog_writing


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import does, by server name. `policy_changes` holds the fields that get another value.

    Those of `changed` that get another destination are also in `replaced`: that cannot be undone.
    `ignored` are keys of servers that nothing here reads; `disabled` the servers that are not used after it.
    """

    dialect: Dialect | None
    added: tuple[str, ...]
    changed: tuple[str, ...]
    replaced: tuple[str, ...]
    unchanged: tuple[str, ...]
    policy: str
    policy_changes: Mapping[str, object]
    ignored: Mapping[str, tuple[str, ...]]
    disabled: tuple[str, ...]


@catalog_writing()
def import_config(
    *,
    config: Config,
    policy_slug: str,
    actor: changes.Actor,
    dry_run: bool = False,
    left_out: Collection[str] = (),
) -> ImportPlan:
    """Add or update servers and apply search settings to the policy: all or nothing.

    A server is asked for its tools as soon as a worker is free, unless it is disabled. With `dry_run` nothing
    is stored. `left_out` names fields of the servers that the caller filled in as they are shown.
    """
    changes.require(actor, Role.EDITOR)
    policy = _find_policy(policy_slug)
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
    plan = ImportPlan(
        dialect=config.dialect,
        added=tuple(one.name for one in added),
        changed=tuple(one.name for one in changed),
        replaced=tuple(one.name for one in changed if _is_replaced(one, stored[one.name])),
        unchanged=tuple(one.name for one in merged if one.name not in moved),
        policy=policy.slug,
        policy_changes=_differing(policy, config),
        ignored=config.ignored,
        disabled=tuple(one.name for one in merged if not one.enabled),
    )
    if not dry_run:
        for entry in (*added, *changed):
            _store(entry, known.get(entry.name), actor)
        if plan.policy_changes:
            policies.change_policy(policy=policy, changed=plan.policy_changes, actor=actor)
    return plan


def export_config(
    *, dialect: Dialect, policy_slug: str, actor: changes.Actor, secrets: bool = False
) -> Rendered:
    """The catalog's servers and a policy as a file. Secrets are `${NAME}` references unless an admin asks."""
    changes.require(actor, Role.ADMIN if secrets else Role.VIEWER)
    policy = read_policy(_find_policy(policy_slug))
    entries = [servers.read_entry(server) for server in Server.objects.exclude(transport=Transport.SNAPSHOT)]
    return dialects.render(dialect, entries, policy, secrets=secrets)


def _fill_in(entry: ServerEntry, known: Server | None) -> ServerEntry:
    """What a file does not say stays as it is, or is as usual."""
    kind = entry.kind or (Kind(known.kind) if known else Kind.MCP)
    was_enabled = known.enabled if known else True
    return replace(entry, kind=kind, enabled=was_enabled if entry.enabled is None else entry.enabled)


def _store(entry: ServerEntry, known: Server | None, actor: changes.Actor) -> None:
    """Whether a server is used comes first: one that the file disables is not asked for its tools."""
    if known is not None:
        assert entry.kind is not None
        assert entry.enabled is not None
        server_settings.set_enabled(server=known, enabled=entry.enabled, actor=actor)
        server_settings.set_kind(server=known, kind=entry.kind, actor=actor)
    servers.store_entry(entry=entry, actor=actor)


def _find_policy(slug: str) -> Policy:
    policy = Policy.objects.filter(slug=slug).first()
    if policy is None:
        raise NotFound(f"there is no policy {slug}")
    return policy


def _keep_secrets(
    entry: ServerEntry, stored: ServerEntry | None, left_out: Collection[str], *, with_path: bool
) -> ServerEntry:
    """A value that reads as our own export of it keeps the stored secret, so exports can be edited."""
    if stored is None or stored.transport == Transport.SNAPSHOT:
        return entry
    return destinations.keep_secrets(entry, stored, left_out=left_out, with_path=with_path)


def _is_replaced(entry: ServerEntry, stored: ServerEntry | None) -> bool:
    """Also where nobody can tell, since what was stored cannot be read any more."""
    return stored is None or not destinations.is_same_destination(entry, stored, with_path=False)


def _differing(policy: Policy, config: Config) -> dict[str, object]:
    before = read_policy(policy)
    after = before.change(config.changes_for(before)).to_mapping()
    return {name: after[name] for name, value in before.to_mapping().items() if after[name] != value}
