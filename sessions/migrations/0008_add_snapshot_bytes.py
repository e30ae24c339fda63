"""What a session's snapshots take, which counts toward what its key may store."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("agent_sessions", "0007_leave_keys_to_catalog")]

    operations = [
        migrations.AddField(
            model_name="agentsession",
            name="snapshot_bytes",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="What its snapshots take."
            ),
        ),
        migrations.AlterField(
            model_name="agentsession",
            name="own_bytes",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                help_text="About what it stores beyond what every session may.",
            ),
        ),
    ]
