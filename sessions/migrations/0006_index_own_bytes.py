"""An index that sums up what the sessions of a key bring along."""

from django.db import migrations, models

from catalog.migration_operations import AddIndexOnline


class Migration(migrations.Migration):

    atomic = False

    dependencies = [("agent_sessions", "0005_add_own_bytes")]

    operations = [
        AddIndexOnline(
            model_name="agentsession",
            index=models.Index(
                condition=models.Q(("own_bytes__gt", 0)),
                fields=["key", "last_seen_at", "own_bytes"],
                name="agent_session_with_own_bytes",
            ),
        ),
    ]
