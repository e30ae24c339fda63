"""The catalog's version: a number that grows with every change to what is searched."""

from django.db import models
from django.db.models import F


class CatalogVersion(models.Model):
    """A single row. Its lock orders the writers, so versions become visible in the order they were given."""

    number = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(pk=1), name="catalog_version_is_one_row")]

    def __str__(self) -> str:
        return str(self.number)

    @classmethod
    def lock(cls) -> None:
        """Lock the row until the transaction ends."""
        cls.objects.select_for_update().get(pk=1)

    @classmethod
    def advance(cls) -> int:
        """The next version. Call inside the transaction that uses it."""
        cls.objects.filter(pk=1).update(number=F("number") + 1)
        return cls.current()

    @classmethod
    def current(cls) -> int:
        return cls.objects.get(pk=1).number
