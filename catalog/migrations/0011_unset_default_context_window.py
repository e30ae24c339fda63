from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

# What a policy had that nobody gave another; unset means the same. One that was edited keeps the number,
# for its records name it. One that measures by the window keeps it too: nodes of the version before, which
# run until they are restarted, read a number there.
FORMER_DEFAULT = 200_000
READ_THE_WINDOW = ("context_percent", "context_used")


def unset(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    policies = apps.get_model("catalog", "Policy").objects
    unedited = policies.filter(context_window=FORMER_DEFAULT, version=1)
    unedited.exclude(threshold_unit__in=READ_THE_WINDOW).update(context_window=None)


def fill(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("catalog", "Policy").objects.filter(context_window=None).update(
        context_window=FORMER_DEFAULT
    )


class Migration(migrations.Migration):
    dependencies = [("catalog", "0010_allow_unset_context_window")]

    operations = [migrations.RunPython(unset, fill)]
