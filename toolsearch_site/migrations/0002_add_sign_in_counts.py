from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("toolsearch_site", "0001_add_nodes_and_leases")]

    operations = [
        migrations.CreateModel(
            name="SignInCount",
            fields=[
                (
                    "key",
                    models.CharField(
                        help_text="A keyed hash: no name is kept.", max_length=64, primary_key=True, serialize=False
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("ends_at", models.DateTimeField(db_index=True)),
            ],
        ),
    ]
