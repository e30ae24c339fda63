"""Jobs that test a connection: what they need, sealed until they end, and what they found."""

from django.db import migrations, models

KINDS = [
    ("refresh_server", "Refresh a server"),
    ("update_index", "Update the search index"),
    ("decide", "Decide which tools load"),
    ("run_saved_queries", "Run the saved queries"),
    ("test_server", "Test a connection"),
]


class Migration(migrations.Migration):
    dependencies = [("catalog", "0016_mark_demo")]

    operations = [
        migrations.AddField(
            model_name="job",
            name="sealed",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="Encrypted: what the job needs, until it ends.",
            ),
        ),
        migrations.AddField(
            model_name="job",
            name="result",
            field=models.JSONField(blank=True, help_text="Of a job that somebody waits for.", null=True),
        ),
        migrations.AlterField(
            model_name="job", name="kind", field=models.CharField(choices=KINDS, max_length=20)
        ),
        migrations.RemoveConstraint(model_name="job", name="job_kind_is_known"),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", [kind for kind, _ in KINDS])), name="job_kind_is_known"
            ),
        ),
    ]
