"""What else changes a server: whether it is used at all, and its end."""

from django.utils import timezone

from catalog.access import Role
from catalog.models import Server, Tool
from catalog.models.changes import Action, Subject
from catalog.services import changes, decisions, followers
from catalog.services.servers import describe
from catalog.services.tools import mark_changed, mark_facts_changed
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
def delete_server(*, server: Server, actor: changes.Actor) -> None:
    """The server, its tools and their history go, and with them its tools from every decided list."""
    changes.require(actor, Role.ADMIN)
    row = Server.objects.select_for_update().get(pk=server.pk)
    before = describe(row)
    tool_ids = list(row.tools.values_list("pk", flat=True))
    Tool.objects.filter(pk__in=tool_ids, gone_at=None).update(gone_at=timezone.now())
    mark_changed(tool_ids)
    decisions.bring_up_to_date()
    row.delete()
    followers.request_all()
    changes.record(actor=actor, subject=Subject.SERVER, name=row.name, action=Action.DELETED, before=before)
