"""Pagination of long lists."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from django.core.paginator import Paginator
from django.db.models import Model, QuerySet

PAGE_ROWS = 50

Row = TypeVar("Row")
Other = TypeVar("Other")
M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    rows: list[Row]
    number: int
    pages: int
    total: int
    first: int
    last: int

    @property
    def previous(self) -> int | None:
        return self.number - 1 if self.number > 1 else None

    @property
    def next(self) -> int | None:
        return self.number + 1 if self.number < self.pages else None

    def with_rows(self, rows: "list[Other]") -> "Page[Other]":
        """The same page with each row converted."""
        return Page(rows, self.number, self.pages, self.total, self.first, self.last)


def cut_page(rows: "QuerySet[M]", number: str | int, *, size: int = PAGE_ROWS) -> Page[M]:
    """The page asked for, or the nearest that exists: shared links must not break when rows are deleted."""
    page = Paginator(rows, size).get_page(number)
    return Page(
        rows=list(page.object_list),
        number=page.number,
        pages=page.paginator.num_pages,
        total=page.paginator.count,
        first=page.start_index(),
        last=page.end_index(),
    )
