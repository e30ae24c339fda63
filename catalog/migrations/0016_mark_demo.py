"""Marks the demo of instances that loaded it before there was a mark.

The demo is what the program itself added and nobody has replaced since: a server with an address or tools of
somebody's own, or a query that should find other tools now, is theirs.
"""

from datetime import timedelta
from typing import Any

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

PROGRAM = "toolsearch"
SNAPSHOTS = (
    *("calendar", "crm", "drive", "filesystem", "github", "jira"),
    *("kubernetes", "postgres", "sentry", "slack", "stripe"),
)
WORKSHOP = "workshop"
ADDRESS = {"transport", "command", "args", "env", "url", "headers", "secrets"}
LOADED_WITHIN = timedelta(minutes=1)


def mark(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    changes = apps.get_model("catalog", "Change").objects.filter(subject="server")
    servers = apps.get_model("catalog", "Server").objects
    found = [
        *servers.filter(name__in=SNAPSHOTS, transport="snapshot"),
        *servers.filter(name=WORKSHOP, transport="stdio"),
    ]
    of_demo = [one.pk for one in found if _is_as_loaded(one, changes.filter(name=one.name))]
    servers.filter(pk__in=of_demo).update(demo=True)
    _mark_queries(apps)


def _is_as_loaded(server: Any, changes: Any) -> bool:
    recorded = list(changes.order_by("pk").values_list("actor", "action", "after"))
    if not recorded or recorded[0][:2] != (PROGRAM, "created"):
        return False
    if any(action != "changed" or ADDRESS.intersection(after) for _, action, after in recorded[1:]):
        return False
    late = server.tools.filter(first_seen_at__gt=server.created_at + LOADED_WITHIN)
    return server.name == WORKSHOP or not late.exists()


def _mark_queries(apps: Apps) -> None:
    changes = apps.get_model("catalog", "Change").objects
    added = changes.filter(subject="query", action="created", actor=PROGRAM).values_list("after", flat=True)
    saved = {(one["policy"], one["query"], tuple(one["expected"])) for one in added}
    queries = apps.get_model("catalog", "SavedQuery").objects
    rows = queries.filter(query__in=[query for _, query, _ in saved]).select_related("policy")
    of_demo = [row.pk for row in rows if (row.policy.slug, row.query, tuple(row.expected)) in saved]
    queries.filter(pk__in=of_demo).update(demo=True)


def unmark(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for model in ("Server", "SavedQuery"):
        apps.get_model("catalog", model).objects.filter(demo=True).update(demo=False)


class Migration(migrations.Migration):
    dependencies = [("catalog", "0015_add_demo_marks")]

    operations = [migrations.RunPython(mark, unmark)]
