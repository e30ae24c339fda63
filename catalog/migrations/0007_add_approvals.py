"""What admins stand by: the marks of each definition, its approval, and the form a change is measured from."""

from django.db import migrations, models
from django.db.models import F


def take_present_forms(apps, schema_editor):
    """Tools known before there were approvals: a change is measured from what they are now."""
    apps.get_model("catalog", "Tool").objects.filter(baseline_digest="").update(baseline_digest=F("digest"))


class Migration(migrations.Migration):

    dependencies = [("catalog", "0006_add_saved_queries")]

    operations = [
        migrations.AddField(
            model_name="tool",
            name="marks",
            field=models.JSONField(
                blank=True,
                null=True,
                help_text="What in the definition to look at; unset until it was looked over.",
            ),
        ),
        migrations.AddField(
            model_name="tool",
            name="mark_count",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tool",
            name="approval",
            field=models.CharField(
                choices=[("new", "New"), ("approved", "Approved"), ("changed", "Changed")],
                db_default="new",
                default="new",
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="tool",
            name="baseline_digest",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Of the approved form, or of the first one of a tool that nobody approved.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="tool",
            name="approved_by",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Empty for a tool that was known when quarantine was switched on.",
                max_length=200,
            ),
        ),
        migrations.AddField(
            model_name="tool",
            name="approved_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.RunPython(take_present_forms, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="tool",
            index=models.Index(
                fields=["approval", "mark_count", "approved_by", "gone_at", "hidden", "server"],
                name="tool_to_review",
            ),
        ),
        migrations.AddIndex(
            model_name="tool",
            index=models.Index(
                condition=models.Q(("mark_count", None)), fields=["id"], name="tool_unmarked"
            ),
        ),
        migrations.AddConstraint(
            model_name="tool",
            constraint=models.CheckConstraint(
                condition=models.Q(("approval__in", ["new", "approved", "changed"])),
                name="tool_approval_is_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="tool",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("approval", "approved"), _negated=True),
                    ("approved_at__isnull", False),
                    _connector="OR",
                ),
                name="tool_approved_has_a_time",
            ),
        ),
    ]
