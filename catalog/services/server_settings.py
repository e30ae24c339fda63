"""What else changes a server: whether it is used at all, its kind, and its end."""

from catalog.access import Role
from catalog.domain.choices import Kind
from catalog.models import CatalogVersion, Server
from catalog.models.changes import Action, Subject
from catalog.services import changes, decisions, followers, saved_queries
from catalog.services.servers import describe
from catalog.services.tools import mark_facts_changed, rename_tools
from catalog.services.writing import catalog_writing


@catalog_writing()
def set_enabled(*, server: Server, enabled: bool, actor: changes.Actor) -> None:
    """A disabled server's tools are in no list, no sum and no search; what was set on them stays."""
    changes.require(actor, Role.EDITOR)
    row = Server.objects.select_for_update().get(pk=server.pk)
    if row.enabled == enabled:
        return
    row.enabled = enabled
    row.save(update_fields=["enabled", "updated_at"])
    mark_facts_changed(row.tools.all())
    followers.request_all()
    changes.record(
        actor=actor,
        subject=Subject.SERVER,
        name=row.name,
        action=Action.CHANGED,
        before={"enabled": not enabled},
        after={"enabled": enabled},
    )


@catalog_writing()
def set_kind(*, server: Server, kind: Kind, actor: changes.Actor) -> None:
    """Make the server of another kind. Its tools get the names of that kind, as if they were new under it.

    For agents the tools of the old names are gone: a session that had loaded one searches again. What
    admins set, approved and recorded stays with the tools, and saved queries expect the new names. Globs of
    policies and sessions that spell an old name out match no more; bare names and `server/tool` do.
    """
    changes.require(actor, Role.EDITOR)
    row = Server.objects.select_for_update().get(pk=server.pk)
    if row.kind == kind:
        return
    before: dict[str, object] = {"kind": str(row.kind)}
    row.kind = kind
    row.save(update_fields=["kind", "updated_at"])
    decisions.request_all_anew()  # locks the lists, which comes before the tools
    saved_queries.rename_expected(rename_tools(row))
    followers.request_all()
    changes.record(
        actor=actor,
        subject=Subject.SERVER,
        name=row.name,
        action=Action.CHANGED,
        before=before,
        after={"kind": str(kind)},
    )


@catalog_writing()
def delete_server(*, server: Server, actor: changes.Actor) -> None:
    """The server, its tools and their history go, and with them its tools from every decided list.

    A worker decides anew where that takes a policy below its threshold.
    """
    changes.require(actor, Role.ADMIN)
    row = Server.objects.select_for_update().get(pk=server.pk)
    before = describe(row)
    decisions.take_out_server(row)
    row.delete()
    CatalogVersion.advance()
    followers.request_all()
    changes.record(actor=actor, subject=Subject.SERVER, name=row.name, action=Action.DELETED, before=before)
