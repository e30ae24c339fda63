"""Jobs that encode tools, allowed without holding up writers."""

from django.db import migrations, models

from catalog.migration_operations import AddCheckOnline

KINDS = [
    ("refresh_server", "Refresh a server"),
    ("update_index", "Update the search index"),
    ("decide", "Decide which tools load"),
    ("run_saved_queries", "Run the saved queries"),
    ("test_server", "Test a connection"),
    ("encode_tools", "Encode tools for search by meaning"),
]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("catalog", "0021_add_tool_vectors")]

    operations = [
        migrations.AlterField(
            model_name="job", name="kind", field=models.CharField(choices=KINDS, max_length=20)
        ),
        AddCheckOnline(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", [kind for kind, _ in KINDS])), name="job_kind_is_known"
            ),
        ),
    ]
