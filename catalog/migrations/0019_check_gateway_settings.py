"""Bounds of the gateway's settings, checked without holding up writers."""

from django.db import migrations, models

from catalog.migration_operations import AddCheckOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('catalog', '0018_add_gateway_settings'),
    ]

    operations = [
        AddCheckOnline(
            model_name='policy',
            constraint=models.CheckConstraint(condition=models.Q(('exposure__in', ['search', 'native'])), name='policy_exposure_is_known'),
        ),
        AddCheckOnline(
            model_name='policy',
            constraint=models.CheckConstraint(condition=models.Q(('record_calls__in', ['names', 'full'])), name='policy_record_calls_is_known'),
        ),
        AddCheckOnline(
            model_name='policy',
            constraint=models.CheckConstraint(condition=models.Q(('call_timeout_seconds', None), models.Q(('call_timeout_seconds__gte', 1), ('call_timeout_seconds__lte', 3600)), _connector='OR'), name='policy_call_timeout_seconds_is_in_range'),
        ),
        AddCheckOnline(
            model_name='policy',
            constraint=models.CheckConstraint(condition=models.Q(('max_result_tokens', None), models.Q(('max_result_tokens__gte', 0), ('max_result_tokens__lte', 2147483647)), _connector='OR'), name='policy_max_result_tokens_is_in_range'),
        ),
    ]
