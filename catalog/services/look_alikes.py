"""Tools that a search for one tool finds too: the search index knows them without a walk over the catalog."""

from catalog.domain.advice import are_alike, have_same_name
from catalog.domain.choices import Ranker
from catalog.domain.query import MAX_QUERY_CHARS, Keywords
from catalog.models import Tool
from catalog.search.errors import IndexDamaged
from catalog.search.request import SearchRequest
from catalog.services.search import read_listed, search_index

NEAREST = 12


def find_look_alikes(tool: Tool) -> list[Tool]:
    """Others with the same name or nearly the same description, the nearest first; NEAREST are looked at.

    None while the index is away: an advice is not worth building one.
    """
    text = f"{tool.name} {tool.description}"[:MAX_QUERY_CHARS]
    request = SearchRequest(Keywords(text), ranker=Ranker.BM25F, max_results=NEAREST, visible=read_listed())
    try:
        hits = search_index(request).hits
    except IndexDamaged:
        return []
    ids = [hit.id for hit in hits if hit.id != tool.pk]
    found = Tool.objects.select_related("server").only(
        "name", "description", "qualified_name", "server__name"
    )
    near = found.in_bulk(ids)
    return [near[one] for one in ids if one in near and _is_look_alike(tool, near[one])]


def _is_look_alike(tool: Tool, other: Tool) -> bool:
    return have_same_name(tool.name, other.name) or are_alike(tool.description, other.description)
