"""Its bounds, checked without holding up writers."""

from django.db import migrations, models

from catalog.migration_operations import AddCheckOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ('catalog', '0023_add_meaning_floor'),
    ]

    operations = [
        AddCheckOnline(
            model_name='policy',
            constraint=models.CheckConstraint(condition=models.Q(('meaning_floor', None), models.Q(('meaning_floor__gte', 0), ('meaning_floor__lte', 1)), _connector='OR'), name='policy_meaning_floor_is_in_range'),
        ),
    ]
