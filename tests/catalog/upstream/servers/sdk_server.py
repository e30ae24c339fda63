"""A server on the SDK: `sdk_server.py stdio|http|sse`. Over HTTP it takes a free port, told on stderr."""

import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    Icon,
    PromptReference,
    ResourceTemplateReference,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

server = MCPServer(
    name="library", title="The Library", version="2.1", instructions="Ask for books.", log_level="INFO"
)


class Book(BaseModel):
    title: str
    year: int


@server.tool(
    title="Find a book",
    annotations=ToolAnnotations(read_only_hint=True),
    icons=[Icon(src="https://example.org/book.png", mime_type="image/png")],
    meta={"anthropic/alwaysLoad": True, "anthropic/searchHint": "novels"},
)
def find_book(title: Annotated[str, Field(description="Part of its title")], limit: int = 5) -> list[Book]:
    """Find books by their title."""
    return [Book(title=title, year=1900 + limit)]


@server.tool()
def lend_book(book_id: int) -> str:
    """Lend a book to a reader."""
    return f"lent {book_id}"


@server.resource("shelf://fiction", title="Fiction", description="What stands there.", mime_type="text/plain")
def fiction() -> str:
    return "Emma"


@server.resource("book://{number}")
def book(number: str) -> str:
    """One book."""
    return number


@server.prompt(title="Ask for advice")
def advise(taste: str, length: str = "short") -> str:
    """Which book to read next."""
    return f"{taste} {length}"


@server.completion()  # type: ignore[no-untyped-call]
async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion | None:
    return None


if __name__ == "__main__":
    match sys.argv[1]:
        case "http":
            server.run("streamable-http", port=0)
        case "sse":
            server.run("sse", port=0)
        case _:
            server.run("stdio")
