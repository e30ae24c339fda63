"""Tools that are like one tool, and the advice on its definition that they give rise to.

A search for the tool finds them: the index knows them without a walk over the catalog.
"""

from collections.abc import Sequence

from catalog.domain.choices import Ranker
from catalog.domain.definitions import Definition
from catalog.domain.limits import QUERY_CHARS
from catalog.domain.lint import (
    LintContext,
    LintIssue,
    SimilarTool,
    are_alike,
    have_same_name,
    lint_definition,
)
from catalog.domain.query import Keywords
from catalog.models import Tool
from catalog.search.errors import IndexDamaged
from catalog.search.request import SearchRequest
from catalog.selectors.search import read_listed, search_index

NEAREST = 12


def find_similar_tools(tool: Tool) -> list[Tool]:
    """Other tools with the same name or nearly the same description, the nearest first; checks NEAREST.

    None while the index is missing: lint is not worth building one.
    """
    text = f"{tool.name} {tool.description}"[:QUERY_CHARS]
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


def advise_tool(tool: Tool, *, look_alikes: Sequence[Tool]) -> tuple[LintIssue, ...]:
    """How many are larger is counted in the index of sizes, which holds gone and hidden tools as well."""
    definition = Definition(name=tool.name, description=tool.description, input_schema=tool.input_schema)
    around = LintContext(
        neighbours=tuple(
            SimilarTool(
                f"{other.server.name}/{other.name}", other.qualified_name, other.name, other.description
            )
            for other in look_alikes
        ),
        larger=Tool.objects.filter(chars__gt=tool.chars).count(),
        tools=Tool.objects.count(),
    )
    return lint_definition(definition, around)


def _is_look_alike(tool: Tool, other: Tool) -> bool:
    return have_same_name(tool.name, other.name) or are_alike(tool.description, other.description)
