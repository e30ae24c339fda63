"""What a session brings along, in bytes."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("agent_sessions", "0004_add_events_and_activity")]

    operations = [
        migrations.AddField(
            model_name="agentsession",
            name="own_bytes",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                help_text="About what its built-ins and lists of visible tools take.",
            ),
        ),
    ]
