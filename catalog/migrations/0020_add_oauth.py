"""Signing in to servers by OAuth: clients, grants, and sign-ins under way."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0019_check_gateway_settings'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='OAuthAttempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state_sha256', models.CharField(max_length=64, unique=True)),
                ('expires_at', models.DateTimeField()),
                ('sealed', models.TextField(help_text='Encrypted: what the way back needs.')),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='catalog.server')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['expires_at'], name='oauth_attempt_age')],
            },
        ),
        migrations.CreateModel(
            name='OAuthClient',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('none', 'None'), ('headers', 'Headers'), ('oauth', 'Oauth'), ('client_credentials', 'Client credentials')], default='oauth', max_length=20)),
                ('source', models.CharField(choices=[('given', 'Given by an admin'), ('document', "The address of this console's own description"), ('registered', 'Registered by this console')], max_length=12)),
                ('issuer', models.CharField(max_length=2000)),
                ('client_id', models.TextField()),
                ('method', models.CharField(help_text='How it proves who it is; empty: as the server wants.', max_length=40)),
                ('redirect_uris', models.JSONField(default=list, help_text='Those that it was registered with.')),
                ('scopes', models.JSONField(default=list, help_text="An admin's choice, or those that it registered for; empty: the server's.")),
                ('pkce_unlisted', models.BooleanField(default=False, help_text='The authorization server takes PKCE although it does not say so.')),
                ('sealed', models.TextField(blank=True, help_text="Encrypted: the client's secret or private key.")),
                ('secret_expires_at', models.DateTimeField(blank=True, null=True)),
                ('server', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='oauth_client', to='catalog.server')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['oauth', 'client_credentials'])), name='oauth_client_kind_is_known'), models.CheckConstraint(condition=models.Q(('source__in', ['given', 'document', 'registered'])), name='oauth_client_source_is_known'), models.CheckConstraint(condition=models.Q(('client_id', ''), _negated=True), name='oauth_client_has_an_id')],
            },
        ),
        migrations.CreateModel(
            name='OAuthGrant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('none', 'None'), ('sign_in_needed', 'Sign in needed'), ('connected', 'Connected'), ('reconnect_needed', 'Reconnect needed'), ('scope_needed', 'Scope needed')], default='none', max_length=20)),
                ('resource_metadata', models.CharField(blank=True, max_length=2000)),
                ('needed_scopes', models.JSONField(default=list, help_text='Those that the server asked for last.')),
                ('issuer', models.CharField(blank=True, max_length=2000)),
                ('address_sha256', models.CharField(blank=True, help_text="Of the server's address that the tokens are for.", max_length=64)),
                ('asked_scopes', models.JSONField(default=list)),
                ('granted_scopes', models.JSONField(default=list)),
                ('connected_by', models.CharField(blank=True, max_length=200)),
                ('connected_at', models.DateTimeField(blank=True, null=True)),
                ('obtained_at', models.DateTimeField(blank=True, help_text='When the present token was made.', null=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('renews', models.BooleanField(default=False, help_text='Whether a new token needs nobody to sign in.')),
                ('generation', models.PositiveBigIntegerField(default=0)),
                ('holder', models.CharField(blank=True, max_length=40)),
                ('held_until', models.DateTimeField(blank=True, null=True)),
                ('rest_until', models.DateTimeField(blank=True, help_text='The authorization server failed, and is not asked before then.', null=True)),
                ('last_error', models.TextField(blank=True)),
                ('sealed', models.TextField(blank=True, help_text='Encrypted: tokens, and who gives new ones.')),
                ('server', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='oauth_grant', to='catalog.server')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['none', 'sign_in_needed', 'connected', 'reconnect_needed', 'scope_needed'])), name='oauth_grant_state_is_known')],
            },
        ),
    ]
