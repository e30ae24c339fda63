"""A small catalog to search in, and short ways to ask it."""

from collections.abc import Sequence
from typing import Any

from catalog.domain.query import parse_pattern, parse_query
from catalog.search.answers import answer
from catalog.search.compiled import Compiled
from catalog.search.compiling import compile_documents
from catalog.search.documents import ToolDocument
from catalog.search.meaning import QueryMeaning, Vectors
from catalog.search.request import SearchOutcome, SearchRequest


def make_tool(number: int, server: str, name: str, description: str = "", **fields: Any) -> ToolDocument:
    given = {"qualified_name": f"mcp__{server}__{name}", "server": server, "name": name, **fields}
    return ToolDocument(id=number, description=description, **given)


TOOLS = (
    make_tool(1, "github", "create_issue", "Open a new issue in a repository.", parameters=(("title", ""),)),
    make_tool(
        2, "github", "list_issues", "List issues of a repository.", parameters=(("state", "open or closed"),)
    ),
    make_tool(3, "github", "add_comment", "Comment on an issue.", parameters=(("body", "the text"),)),
    make_tool(4, "slack", "send_message", "Post a message to a channel.", parameters=(("channel", ""),)),
    make_tool(5, "slack", "list_channels", "All channels of the workspace."),
    make_tool(6, "weather", "getForecast", "Weather forecast for a city.", keywords="rain sunshine"),
    make_tool(
        7, "jira", "create_issue", "Create a ticket in a project.", title="New ticket", hint="bug report"
    ),
    make_tool(8, "bing-cn", "bing_search", "使用必应搜索指定的关键词"),
    make_tool(9, "files", "Read", "Read a file from disk.", qualified_name="Read", kind="builtin"),
)


class MadeUpEncoder:
    """The rest of an encoder whose tests say how it encodes texts. It knows every query in whole."""

    is_sentence_encoder = False
    known = 1.0

    def encode(self, texts: Sequence[str]) -> Vectors:
        raise NotImplementedError

    def encode_query(self, text: str) -> QueryMeaning | None:
        return QueryMeaning(self.encode([text])[0], self.known)


def compile_tools(tools: Sequence[ToolDocument] = TOOLS) -> Compiled:
    return compile_documents(tools, None)


def search(text: str, compiled: Compiled | None = None, **options: Any) -> SearchOutcome:
    request = SearchRequest(parse_query(text), **options)
    return answer(compiled or compile_tools(), request, None)


def match(pattern: str, compiled: Compiled | None = None, **options: Any) -> SearchOutcome:
    request = SearchRequest(parse_pattern(pattern), **options)
    return answer(compiled or compile_tools(), request, None)


def names(outcome: SearchOutcome) -> list[str]:
    return [hit.qualified_name for hit in outcome.hits]
