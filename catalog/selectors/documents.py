"""The catalog's tools as documents for the search index."""

from collections.abc import Iterator

from django.db.models import Max

from catalog.models import Tool
from catalog.models.tools import ToolQuerySet
from catalog.search.documents import ToolDocument, make_document

READ_AT_ONCE_ROWS = 1000


def read_documents() -> Iterator[ToolDocument]:
    """Every tool that can be searched."""
    return documents_of(searchable_tools())


def searchable_tools() -> ToolQuerySet:
    """Includes hidden tools and tools of disabled servers; a search masks them."""
    return Tool.objects.filter(gone_at=None)


def searched_version() -> int:
    """The version of the last change to searched fields; settings that only affect decisions do not count."""
    return Tool.objects.aggregate(last=Max("version"))["last"] or 0


def documents_of(tools: ToolQuerySet) -> Iterator[ToolDocument]:
    for tool in tools.select_related("server").order_by("pk").iterator(chunk_size=READ_AT_ONCE_ROWS):
        yield make_document(
            {
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "inputSchema": tool.input_schema,
                "annotations": tool.annotations,
                "_meta": tool.meta,
            },
            id=tool.pk,
            qualified_name=tool.qualified_name,
            server=tool.server.name,
            kind=tool.server.kind,
            keywords=tool.keywords,
        )
