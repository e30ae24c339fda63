"""How many definitions a refresh kept out beside those that its record names."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("catalog", "0008_add_change_seals")]

    operations = [
        migrations.AddField(
            model_name="refreshrun",
            name="rejected_more",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="Definitions kept out beside those."
            ),
        ),
        migrations.AlterField(
            model_name="refreshrun",
            name="rejected",
            field=models.JSONField(
                default=list, help_text="The first definitions kept out: name and why."
            ),
        ),
    ]
