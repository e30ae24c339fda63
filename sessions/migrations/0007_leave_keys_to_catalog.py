"""Sessions refer to the catalog's keys. The tables stay as they are: only the models' state changes."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("agent_sessions", "0006_index_own_bytes"), ("catalog", "0012_take_over_keys")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="agentsession",
                    name="key",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agent_sessions",
                        to="catalog.apikey",
                    ),
                ),
                migrations.DeleteModel(name="ApiKey"),
            ],
        ),
    ]
