"""The catalog lock: one writer of the catalog at a time, as on SQLite, also on PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from catalog.models import CatalogVersion


@contextmanager
def lock_catalog() -> Iterator[None]:
    """A transaction that locks the catalog first.

    Every service that changes servers or tools begins here, because locking the same rows in different orders
    would be a deadlock. Also a decorator: `@catalog_writing()`.
    """
    with transaction.atomic():
        CatalogVersion.lock()
        yield
