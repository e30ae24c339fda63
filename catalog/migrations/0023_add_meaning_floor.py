"""The similarity from which a policy lets a tool match by meaning alone."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0022_allow_encoding_jobs'),
    ]

    operations = [
        migrations.AddField(
            model_name='policy',
            name='meaning_floor',
            field=models.FloatField(db_default=0.3, default=0.3, help_text='The similarity from which a tool may match by meaning alone.'),
        ),
    ]
