"""How far the policies' decided lists are behind the catalog."""

from django.db.models import F

from catalog.models import CatalogVersion, DecidedList, Policy


def count_behind() -> int:
    """How many policies have a decided list that is behind the catalog or the policy."""
    following = DecidedList.objects.filter(
        catalog_version__gte=CatalogVersion.current(), policy_version=F("policy__version")
    )
    return Policy.objects.count() - following.count()
