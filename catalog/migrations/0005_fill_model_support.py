from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

# Pattern, provider, whether the provider searches deferred tools itself, context window in tokens.
MODELS = [
    ("claude-*", "anthropic", False, 200_000),
    ("claude-opus-4*", "anthropic", True, 200_000),
    ("claude-opus-[5-9]*", "anthropic", True, 200_000),
    ("claude-sonnet-4*", "anthropic", True, 200_000),
    ("claude-sonnet-[5-9]*", "anthropic", True, 200_000),
    ("claude-haiku-4-5*", "anthropic", True, 200_000),
    ("claude-haiku-[5-9]*", "anthropic", True, 200_000),
    ("gpt-*", "openai", False, None),
    ("gpt-5.[4-9]*", "openai", True, None),
    ("gpt-[6-9]*", "openai", True, None),
]


def fill(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    model = apps.get_model("catalog", "ModelSupport")
    model.objects.bulk_create(
        model(name_pattern=pattern, provider=provider, hosted_search=hosted, context_window=window)
        for pattern, provider, hosted, window in MODELS
    )


def empty(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    patterns = [pattern for pattern, *_ in MODELS]
    apps.get_model("catalog", "ModelSupport").objects.filter(name_pattern__in=patterns).delete()


class Migration(migrations.Migration):
    dependencies = [("catalog", "0004_add_model_support")]

    operations = [migrations.RunPython(fill, empty)]
