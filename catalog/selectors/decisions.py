"""How far the policies' decided lists follow the catalog."""

from django.db.models import F

from catalog.models import CatalogVersion, DecidedList, Policy


def count_behind() -> int:
    """Policies whose decided list does not follow the catalog or the policy yet."""
    following = DecidedList.objects.filter(
        catalog_version__gte=CatalogVersion.current(), policy_version=F("policy__version")
    )
    return Policy.objects.count() - following.count()
