"""Seals over the change record. What was recorded before is sealed as it is found, by the first beats."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("catalog", "0007_add_approvals")]

    operations = [
        migrations.AddField(
            model_name="change",
            name="seal_number",
            field=models.PositiveBigIntegerField(blank=True, null=True, unique=True),
        ),
        migrations.AddField(
            model_name="change",
            name="seal",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddIndex(
            model_name="change",
            index=models.Index(
                condition=models.Q(("seal_number", None)), fields=["id"], name="change_unsealed"
            ),
        ),
        migrations.CreateModel(
            name="LastSeal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveBigIntegerField(default=0)),
                ("seal", models.CharField(blank=True, default="", max_length=64)),
                ("end", models.CharField(blank=True, default="", max_length=64)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("pk", 1)), name="last_seal_is_one_row")
                ],
            },
        ),
    ]
