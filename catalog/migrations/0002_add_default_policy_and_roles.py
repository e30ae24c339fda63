"""What exists from the start: the policy `default`, and the three roles as groups."""

from django.db import migrations

ROLES = ("viewer", "editor", "admin")


def add(apps, schema_editor):
    apps.get_model("catalog", "CatalogVersion").objects.get_or_create(pk=1)
    apps.get_model("catalog", "Policy").objects.get_or_create(
        slug="default", defaults={"description": "Serves every key made without a policy of its own."}
    )
    group = apps.get_model("auth", "Group")
    for role in ROLES:
        group.objects.get_or_create(name=role)


def remove(apps, schema_editor):
    apps.get_model("catalog", "CatalogVersion").objects.all().delete()
    apps.get_model("catalog", "Policy").objects.filter(slug="default").delete()
    apps.get_model("auth", "Group").objects.filter(name__in=ROLES).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0001_create_catalog"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [migrations.RunPython(add, remove)]
