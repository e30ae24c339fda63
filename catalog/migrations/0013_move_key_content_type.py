"""Permissions on keys, and the admin's log of them, follow the keys to the catalog."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def _move(apps: Apps, source: str, target: str) -> None:
    """Where `migrate` has made a content type of that name already, both are left as they are."""
    types = apps.get_model("contenttypes", "ContentType").objects.filter(model="apikey")
    if not types.filter(app_label=target).exists():
        types.filter(app_label=source).update(app_label=target)


def move(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    _move(apps, "agent_sessions", "catalog")


def move_back(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    _move(apps, "catalog", "agent_sessions")


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0012_take_over_keys"),
        ("agent_sessions", "0007_leave_keys_to_catalog"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(move, move_back)]
