"""Settings of the gateway, and what servers offer beside their tools."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0017_add_connection_tests'),
    ]

    operations = [
        migrations.CreateModel(
            name='ServerFeatures',
            fields=[
                ('server', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='features', serialize=False, to='catalog.server')),
                ('resources', models.JSONField(default=list)),
                ('templates', models.JSONField(default=list)),
                ('prompts', models.JSONField(default=list)),
                ('completions', models.BooleanField(default=False, help_text='Whether it completes arguments.')),
            ],
        ),
        migrations.AddField(
            model_name='policy',
            name='call_timeout_seconds',
            field=models.PositiveIntegerField(db_default=120, default=120),
        ),
        migrations.AddField(
            model_name='policy',
            name='exposure',
            field=models.CharField(choices=[('search', 'Search'), ('native', 'Native')], db_default='search', default='search', help_text='How the gateway lists tools to MCP clients.', max_length=8),
        ),
        migrations.AddField(
            model_name='policy',
            name='max_result_tokens',
            field=models.PositiveIntegerField(db_default=20000, default=20000, help_text='0 is no limit.'),
        ),
        migrations.AddField(
            model_name='policy',
            name='record_calls',
            field=models.CharField(choices=[('names', 'Names'), ('full', 'Full')], db_default='names', default='names', max_length=5),
        ),
        migrations.AddField(
            model_name='server',
            name='keeps_no_state',
            field=models.BooleanField(db_default=False, default=False, help_text='Keys may share one connection of the gateway to it.'),
        ),
        migrations.AddField(
            model_name='tool',
            name='read_only',
            field=models.BooleanField(blank=True, help_text="An admin's word; unset is what the definition says.", null=True),
        ),
    ]
