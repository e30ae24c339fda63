"""Calls through the gateway, results kept for a while, and what gateway processes are doing."""

import django.db.models.deletion
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent_sessions', '0008_add_snapshot_bytes'),
        ('catalog', '0019_check_gateway_settings'),
    ]

    operations = [
        migrations.CreateModel(
            name='GatewayProcess',
            fields=[
                ('process', models.CharField(help_text='Node and process id.', max_length=80, primary_key=True, serialize=False)),
                ('started_at', models.DateTimeField()),
                ('seen_at', models.DateTimeField()),
                ('open_streams', models.PositiveIntegerField(default=0)),
                ('open_calls', models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='OpenLease',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('opened_at', models.DateTimeField()),
                ('last_used_at', models.DateTimeField()),
                ('open_calls', models.PositiveIntegerField(default=0)),
                ('protocol_version', models.CharField(blank=True, max_length=20)),
                ('close_requested', models.BooleanField(default=False)),
                ('key', models.ForeignKey(help_text='Unset where keys share it.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='leases', to='catalog.apikey')),
                ('process', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='leases', to='agent_sessions.gatewayprocess')),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='leases', to='catalog.server')),
            ],
            options={
                'ordering': ['server', 'opened_at'],
            },
        ),
        migrations.CreateModel(
            name='Call',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(help_text='When it began.')),
                ('key_name', models.CharField(max_length=100)),
                ('session_id', models.UUIDField(help_text='Of a session that may have ended.', null=True)),
                ('policy', models.CharField(max_length=64)),
                ('client', models.CharField(blank=True, help_text='As it named itself.', max_length=100)),
                ('revision', models.CharField(blank=True, max_length=20)),
                ('server', models.CharField(max_length=100)),
                ('tool', models.CharField(help_text='Qualified name.', max_length=64)),
                ('via', models.CharField(choices=[('call_tool', 'call_tool'), ('call_read_tool', 'call_read_tool'), ('direct', 'Directly')], max_length=14)),
                ('outcome', models.CharField(choices=[('ok', 'OK'), ('tool_error', 'Tool error'), ('refused', 'Refused'), ('timeout', 'Timed out'), ('cancelled', 'Cancelled'), ('upstream_failed', 'Server failed')], max_length=15)),
                ('duration_ms', models.PositiveIntegerField()),
                ('upstream_ms', models.PositiveIntegerField(help_text='Unset where the server was not asked.', null=True)),
                ('request_bytes', models.PositiveIntegerField(default=0)),
                ('result_bytes', models.PositiveIntegerField(default=0)),
                ('is_cut', models.BooleanField(default=False)),
                ('error', models.TextField(blank=True)),
                ('arguments', models.TextField(blank=True, help_text='Where the policy records calls in full; masked.')),
                ('result', models.TextField(blank=True, help_text='Likewise.')),
                ('key', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='calls', to='catalog.apikey')),
            ],
            options={
                'ordering': ['-at', '-pk'],
                'indexes': [models.Index(fields=['-at', '-id'], name='call_by_time'), models.Index(fields=['key', '-at', '-id'], name='call_of_key'), models.Index(fields=['server', '-at', '-id'], name='call_of_server'), models.Index(fields=['tool', '-at', '-id'], name='call_of_tool'), models.Index(fields=['outcome', '-at', '-id'], name='call_by_outcome'), models.Index(fields=['session_id', '-at'], name='call_of_session')],
                'constraints': [models.CheckConstraint(condition=models.Q(('via__in', ['call_tool', 'call_read_tool', 'direct'])), name='call_via_is_known'), models.CheckConstraint(condition=models.Q(('outcome__in', ['ok', 'tool_error', 'refused', 'timeout', 'cancelled', 'upstream_failed'])), name='call_outcome_is_known')],
            },
        ),
        migrations.CreateModel(
            name='GatewayClient',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('version', models.CharField(blank=True, max_length=100)),
                ('revision', models.CharField(max_length=20)),
                ('exposure', models.CharField(max_length=8)),
                ('first_seen_at', models.DateTimeField()),
                ('last_seen_at', models.DateTimeField()),
                ('last_call_at', models.DateTimeField(null=True)),
                ('key', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='clients', to='catalog.apikey')),
            ],
            options={
                'ordering': ['-last_seen_at', '-pk'],
                'indexes': [models.Index(fields=['-last_seen_at'], name='gateway_client_by_time')],
                'constraints': [models.UniqueConstraint(fields=('key', 'name', 'revision', 'exposure'), name='gateway_client_is_listed_once')],
            },
        ),
        migrations.CreateModel(
            name='KeptResult',
            fields=[
                ('handle', models.CharField(max_length=43, primary_key=True, serialize=False)),
                ('sealed', models.TextField(help_text='Encrypted.')),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('key', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='catalog.apikey')),
            ],
            options={
                'indexes': [models.Index(fields=['key', 'created_at'], name='kept_result_of_key'), models.Index(fields=['expires_at'], name='kept_result_expiry')],
            },
        ),
        migrations.CreateModel(
            name='UpstreamState',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('breaker', models.CharField(choices=[('closed', 'Calls go through'), ('open', 'Calls are refused for a while'), ('half_open', 'One call is let through to try')], default='closed', max_length=9)),
                ('failures', models.PositiveIntegerField(default=0, help_text='In a row.')),
                ('open_until', models.DateTimeField(null=True)),
                ('error', models.TextField(blank=True)),
                ('refused', models.JSONField(default=dict, help_text='How often each thing was refused, by its name.')),
                ('process', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='upstreams', to='agent_sessions.gatewayprocess')),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='gateway_states', to='catalog.server')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('process', 'server'), name='upstream_state_is_known_once'), models.CheckConstraint(condition=models.Q(('breaker__in', ['closed', 'open', 'half_open'])), name='upstream_state_breaker_is_known')],
            },
        ),
    ]
