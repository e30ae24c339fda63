"""Keys become the catalog's. Their table stays as it is, under its name: only the models' state changes."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("catalog", "0011_unset_default_context_window"),
        ("agent_sessions", "0006_index_own_bytes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="ApiKey",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=100)),
                        ("prefix", models.CharField(max_length=16, unique=True)),
                        ("digest", models.CharField(max_length=64)),
                        (
                            "scope",
                            models.CharField(
                                choices=[("agent", "Agent"), ("admin", "Admin")],
                                default="agent",
                                max_length=8,
                            ),
                        ),
                        ("rate_limit_per_minute", models.PositiveIntegerField(blank=True, null=True)),
                        (
                            "max_sessions",
                            models.PositiveIntegerField(
                                blank=True, help_text="Unset leaves it to the policy's limit.", null=True
                            ),
                        ),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("expires_at", models.DateTimeField(blank=True, null=True)),
                        ("revoked_at", models.DateTimeField(blank=True, null=True)),
                        ("last_used_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "created_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "policy",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="keys",
                                to="catalog.policy",
                            ),
                        ),
                    ],
                    options={
                        "db_table": "agent_sessions_apikey",
                        "ordering": ["name", "pk"],
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("scope__in", ["agent", "admin"])),
                                name="key_scope_is_known",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("name", ""), _negated=True),
                                    models.Q(("prefix", ""), _negated=True),
                                ),
                                name="key_has_names",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("rate_limit_per_minute", None),
                                    ("rate_limit_per_minute__gte", 1),
                                    _connector="OR",
                                ),
                                name="key_rate_limit_is_positive",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("max_sessions", None), ("max_sessions__gte", 1), _connector="OR"
                                ),
                                name="key_max_sessions_is_positive",
                            ),
                        ],
                    },
                ),
            ],
        ),
    ]
