"""Imports and exports config files of any dialect and format."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from catalog.access import actors
from catalog.access.roles import Role
from catalog.domain import dialects
from catalog.domain.choices import Kind, Transport
from catalog.domain.dialects import Config, Dialect, Rendered, ServerEntry
from catalog.domain.errors import Conflict, InvalidInput, NotFound
from catalog.domain.limits import CONFIG_SERVERS
from catalog.domain.problems import join_place
from catalog.models import Policy, Server
from catalog.models.changes import Action, Subject
from catalog.selectors.facts import read_policy
from catalog.services import changes, connections, edits, import_plans, policies, servers
from catalog.services.catalog_lock import lock_catalog
from catalog.services.import_plans import GivenValues, ImportPlan, MadePlan, give_values, make_plan


def plan_import(*, config: Config, policy_slug: str, actor: actors.Actor) -> ImportPlan:
    """What an import would do. Stores nothing and waits for no lock; what is refused is in the plan."""
    actors.require(actor, Role.EDITOR)
    _refuse_too_many(config)
    return make_plan(config=config, policy=_find_policy(policy_slug), actor=actor).plan


def import_config(
    *,
    config: Config,
    policy_slug: str,
    actor: actors.Actor,
    dry_run: bool = False,
    left_out: Collection[str] = (),
    precondition: edits.Precondition | None = None,
    only: Collection[str] | None = None,
    values: GivenValues | None = None,
) -> ImportPlan:
    """Add or update servers and apply search settings to the policy, in one transaction.

    Servers that are refused are named in the plan and the others are stored; where all are refused,
    InvalidInput is raised. A server is refreshed as soon as a worker is free, unless it is disabled. With
    `dry_run` nothing is stored and no lock is waited for. `only` names the servers to take, `values` fills in
    what the file leaves open. `left_out` names fields of the servers that the caller filled in as they are
    shown. Raises OutdatedEdit where the servers or the policy have changed since the plan.
    """
    actors.require(actor, Role.EDITOR)
    _refuse_too_many(config)
    config = give_values(config if only is None else config.take_only(only), values or {})
    if dry_run:
        made = make_plan(config=config, policy=_find_policy(policy_slug), actor=actor, left_out=left_out)
        made.require_some()
        return made.plan
    with lock_catalog():
        policy = _find_policy(policy_slug)
        made = make_plan(config=config, policy=policy, actor=actor, left_out=left_out)
        edits.require_current(made.read, precondition)
        made.require_some()
        _store_all(made, actor)
        if made.plan.policy_changes:
            policies.change_policy(policy=policy, changed=made.plan.policy_changes, actor=actor)
    return made.plan


def add_servers(*, config: Config, policy_slug: str, actor: actors.Actor) -> ImportPlan:
    """Import servers whose names are all new. Raises Conflict where one is taken."""
    with lock_catalog():
        taken = Server.objects.filter(name__in=[one.name for one in config.servers], demo=False).first()
        if taken is not None:
            raise Conflict(f"There is a server named {taken.name} already.")
        return import_config(config=config, policy_slug=policy_slug, actor=actor)


def _refuse_too_many(config: Config) -> None:
    count = len(config.servers) + len(config.refused)
    if count > CONFIG_SERVERS:
        told = f"has {count} servers, at most {CONFIG_SERVERS} can be imported at once"
        raise InvalidInput.at("mcpServers", told)


def merge_server(*, given: ServerEntry, actor: actors.Actor, left_out: Collection[str] = ()) -> ServerEntry:
    """One server as an import would store it: stored secrets in place of masked ones, everything checked.

    Stores nothing. Raises InvalidInput and NotAllowed as an import does.
    """
    actors.require(actor, Role.EDITOR)
    servers.refuse_names({given.name: join_place("mcpServers", given.name)})
    known = Server.objects.filter(name=given.name).first()
    stored = servers.try_read_entry(known) if known else None
    kept = import_plans.keep_stored_secrets(given, stored, left_out, with_path=actor.role < Role.ADMIN)
    entry = import_plans.fill_defaults(kept, known)
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
    keeps_no_state: bool | None = None,
    if_unchanged: edits.Precondition | None = None,
) -> bool:
    """Change what was given of a server; `given` is None where its address stays,
    `keeps_no_state` where that does.

    True where the server is asked for its tools again. Raises OutdatedEdit where the precondition does not
    hold, InvalidInput and NotAllowed as an import does.
    """
    actors.require(actor, Role.EDITOR)
    row = Server.objects.select_for_update().get(pk=server.pk)
    description = " ".join(description.split())
    wanted: dict[str, object] = {"description": description, "kind": str(kind)}
    if keeps_no_state is not None:
        wanted["keepsNoState"] = keeps_no_state
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
    if keeps_no_state is not None:
        servers.set_keeps_no_state(server=row, keeps_no_state=keeps_no_state, actor=actor)
    return is_moved and row.enabled


def export_config(
    *, dialect: Dialect, policy_slug: str, actor: actors.Actor, secrets: bool = False
) -> Rendered:
    """The catalog's servers and a policy as a file. Secrets are `${NAME}` references unless an admin asks."""
    actors.require(actor, Role.ADMIN if secrets else Role.VIEWER)
    policy = read_policy(_find_policy(policy_slug))
    entries = [servers.read_entry(server) for server in Server.objects.exclude(transport=Transport.SNAPSHOT)]
    return dialects.render_config(dialect, entries, policy, secrets=secrets)


def _store_all(made: MadePlan, actor: actors.Actor) -> None:
    """Several new servers are one change of the record, which lists them."""
    new = [entry for entry in made.entries if entry.name not in made.known]
    is_recorded = len(new) <= 1
    for entry in made.entries:
        _store(entry, made.known.get(entry.name), actor, is_recorded=is_recorded or entry.name in made.known)
    if not is_recorded:
        _record_many(new, actor)


def _store(entry: ServerEntry, known: Server | None, actor: actors.Actor, *, is_recorded: bool) -> None:
    """Sets `enabled` first: a server that the file disables must not be refreshed."""
    if known is not None:
        assert entry.kind is not None
        assert entry.enabled is not None
        servers.set_enabled(server=known, enabled=entry.enabled, actor=actor)
        servers.set_kind(server=known, kind=entry.kind, actor=actor)
    servers.store_entry(entry=entry, actor=actor, is_recorded=is_recorded)


def _record_many(new: Sequence[ServerEntry], actor: actors.Actor) -> None:
    changes.record_change(
        actor=actor,
        subject=Subject.SERVER,
        name=f"{len(new):,} servers",
        action=Action.CREATED,
        after={"servers": {entry.name: _describe_new(entry) for entry in new}},
    )


def _describe_new(entry: ServerEntry) -> str:
    """Without arguments, variables and headers, as for a server that is recorded alone."""
    target = entry.command or connections.shown_url(entry.url, entry.name)
    return f"{entry.transport} {target}{'' if entry.enabled else ', disabled'}"


def _find_policy(slug: str) -> Policy:
    policy = Policy.objects.filter(slug=slug).first()
    if policy is None:
        raise NotFound(f"there is no policy {slug}")
    return policy
