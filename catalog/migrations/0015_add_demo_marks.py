"""What came with the demo is marked, and keys keep who used them last and for what."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalog", "0014_add_model_prices")]

    operations = [
        migrations.AddField(
            model_name="server",
            name="demo",
            field=models.BooleanField(
                db_default=False, default=False, help_text="Came with the demo, and goes with it."
            ),
        ),
        migrations.AddField(
            model_name="savedquery",
            name="demo",
            field=models.BooleanField(
                db_default=False, default=False, help_text="Came with the demo, and goes with it."
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="last_client",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="As it named itself.", max_length=100
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="last_call",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="Method and path, no ids.", max_length=100
            ),
        ),
    ]
