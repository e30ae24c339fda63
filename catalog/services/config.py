"""Imports and exports the config files that people already have, whatever their dialect."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from catalog.access import Role
from catalog.domain import dialects
from catalog.domain.choices import Transport
from catalog.domain.dialects import Config, Dialect, Rendered, ServerEntry
from catalog.domain.dialects.secrets import hide_secrets
from catalog.domain.errors import NotFound
from catalog.models import Policy, Server
from catalog.selectors.facts import read_policy
from catalog.services import changes, policies, servers
from catalog.services.writing import catalog_writing


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What an import does, by server name. `policy_changes` holds the fields that get another value."""

    dialect: Dialect | None
    added: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    policy: str
    policy_changes: Mapping[str, object]


@catalog_writing()
def import_config(
    *, config: Config, policy_slug: str, actor: changes.Actor, dry_run: bool = False
) -> ImportPlan:
    """Add or update servers and apply search settings to the policy: all or nothing.

    A server is asked for its tools as soon as a worker is free. With `dry_run` nothing is stored.
    """
    changes.require(actor, Role.EDITOR)
    for entry in config.servers:
        servers.check_entry(entry=entry, actor=actor)
    policy = _find_policy(policy_slug)
    known = {
        server.name: server for server in Server.objects.filter(name__in=[one.name for one in config.servers])
    }
    stored = {name: servers.try_read_entry(server) for name, server in known.items()}
    merged = [_keep_hidden_secrets(entry, stored.get(entry.name)) for entry in config.servers]
    changed = [one for one in merged if one.name in known and stored[one.name] != one]
    added = [one for one in merged if one.name not in known]
    moved = {one.name for one in (*added, *changed)}
    plan = ImportPlan(
        dialect=config.dialect,
        added=tuple(one.name for one in added),
        changed=tuple(one.name for one in changed),
        unchanged=tuple(one.name for one in merged if one.name not in moved),
        policy=policy.slug,
        policy_changes=_differing(policy, config.policy_changes or {}),
    )
    if not dry_run:
        for entry in (*added, *changed):
            servers.store_entry(entry=entry, actor=actor)
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


def _find_policy(slug: str) -> Policy:
    policy = Policy.objects.filter(slug=slug).first()
    if policy is None:
        raise NotFound(f"there is no policy {slug}")
    return policy


def _keep_hidden_secrets(entry: ServerEntry, stored: ServerEntry | None) -> ServerEntry:
    """A value that reads as our own export of it keeps the stored secret, so exports can be edited.

    Only for the same destination: or whoever may edit addresses could have secrets sent to one of their own.
    """
    if stored is None:
        return entry
    hidden = hide_secrets(stored)
    if (entry.transport, entry.command, entry.url) != (hidden.transport, hidden.command, hidden.url):
        return entry
    return replace(
        entry,
        args=stored.args if entry.args == hidden.args else entry.args,
        url=stored.url,
        env=_keep_values(entry.env, stored.env, hidden.env),
        headers=_keep_values(entry.headers, stored.headers, hidden.headers),
    )


def _keep_values(
    given: Mapping[str, str], stored: Mapping[str, str], hidden: Mapping[str, str]
) -> dict[str, str]:
    return {name: stored[name] if value == hidden.get(name) else value for name, value in given.items()}


def _differing(policy: Policy, wanted: Mapping[str, object]) -> dict[str, object]:
    before = read_policy(policy)
    after = before.change(wanted).to_mapping()
    return {name: after[name] for name, value in before.to_mapping().items() if after[name] != value}
