"""One writer of the catalog at a time, in one order of locks: what SQLite does anyway, also on PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from catalog.models import CatalogVersion


@contextmanager
def catalog_writing() -> Iterator[None]:
    """A transaction that holds the catalog from its first step.

    Every service that changes servers or tools begins here: two that lock the same rows in different orders
    would wait for each other. Also a decorator: `@catalog_writing()`.
    """
    with transaction.atomic():
        CatalogVersion.lock()
        yield
