"""How far the policies' decided lists are behind the catalog."""

import math

from django.db.models import F

from catalog.models import CatalogVersion, DecidedList, Policy


def count_behind() -> int:
    """How many policies have a decided list that is behind the catalog or the policy."""
    following = DecidedList.objects.filter(
        catalog_version__gte=CatalogVersion.current(), policy_version=F("policy__version")
    )
    return Policy.objects.count() - following.count()


def decided_version(policy: Policy | None) -> float:
    """The catalog's version that the policy's decisions were made from; infinite without a policy.

    It is 0 while all of them are to be made again.
    """
    if policy is None:
        return math.inf
    decided = (
        DecidedList.objects.filter(policy=policy).values_list("catalog_version", "policy_version").first()
    )
    return decided[0] if decided and decided[1] == policy.version else 0
