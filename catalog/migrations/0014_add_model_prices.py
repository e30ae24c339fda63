"""What input tokens of a model cost, and whether a price is only the demo's example."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("catalog", "0013_move_key_content_type")]

    operations = [
        migrations.AddField(
            model_name="modelsupport",
            name="input_price",
            field=models.DecimalField(
                blank=True,
                decimal_places=6,
                help_text="US dollars per million input tokens; unset is unknown.",
                max_digits=12,
                null=True,
                validators=[django.core.validators.MinValueValidator(0)],
            ),
        ),
        migrations.AddField(
            model_name="modelsupport",
            name="cached_input_price",
            field=models.DecimalField(
                blank=True,
                decimal_places=6,
                help_text="US dollars per million input tokens that the provider's prompt cache has.",
                max_digits=12,
                null=True,
                validators=[django.core.validators.MinValueValidator(0)],
            ),
        ),
        migrations.AddField(
            model_name="modelsupport",
            name="prices_are_examples",
            field=models.BooleanField(
                db_default=False, default=False, help_text="The demo's prices, which nobody has set."
            ),
        ),
    ]
