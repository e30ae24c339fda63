"""Vectors of tools' texts, by encoder."""

import django.db.models.deletion
from django.db import migrations, models

def make_id():
    return models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [("catalog", "0020_add_oauth")]

    operations = [
        migrations.CreateModel(
            name="EncoderState",
            fields=[
                ("id", make_id()),
                ("name", models.CharField(max_length=250, unique=True)),
                ("dimensions", models.PositiveIntegerField(default=0, help_text="0 until the first vectors are stored.")),
                ("number", models.PositiveBigIntegerField(default=0, help_text="Grows when vectors were stored: indexes then take them over.")),
                ("edition", models.PositiveIntegerField(default=0, help_text="Grows when all vectors are made anew: indexes then drop those they have.")),
                ("version", models.PositiveBigIntegerField(default=0, help_text="The catalog's version up to which every tool has its vector.")),
                ("done", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(default=0, help_text="Tools, when they were last counted.")),
                ("problem", models.TextField(blank=True, default="", help_text="Why the last attempt failed.")),
                ("problem_at", models.DateTimeField(null=True)),
                ("used_at", models.DateTimeField(help_text="When a node last had this encoder in force.")),
                ("looked_over_at", models.DateTimeField(help_text="When its vectors were last compared with the tools there are.", null=True)),
            ],
        ),
        migrations.CreateModel(
            name="ToolVector",
            fields=[
                ("id", make_id()),
                ("digest", models.CharField(help_text="Of the text that was encoded.", max_length=32)),
                ("vector", models.BinaryField()),
                ("unused_since", models.DateTimeField(help_text="When no tool was first seen to have the text.", null=True)),
                ("encoder", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="vectors", to="catalog.encoderstate")),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("encoder", "digest"), name="tool_vector_once_per_text")],
            },
        ),
    ]
