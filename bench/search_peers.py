"""The search engines that the benchmarks compare, each behind the same five calls."""

import asyncio
import dataclasses
import logging
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import bm25s  # type: ignore[import-untyped]
import tantivy
from fastmcp import Client, FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool
from whoosh import fields, index
from whoosh.analysis import StemmingAnalyzer
from whoosh.qparser import MultifieldParser, OrGroup

from catalog.domain.limits import QUERY_CHARS
from catalog.domain.query import Keywords
from catalog.search import index as our_index
from catalog.search.documents import ToolDocument
from catalog.search.engine import SearchEngine
from catalog.search.meaning import Encoder
from catalog.search.request import SearchRequest
from catalog.search.wordvectors import find_encoder

# It warns of every name that is not to its taste, thousands of lines a run.
logging.getLogger("mcp.shared.tool_name_validation").setLevel(logging.ERROR)

FIVE_FIELDS = ("name", "server", "description", "parameters", "parameter_texts")


class Peer(Protocol):
    """`is_on_disk` tells whether another process can open what was built."""

    name: str
    is_on_disk: bool

    def build(self, documents: Sequence[ToolDocument], folder: Path) -> None: ...

    def open(self, folder: Path) -> None: ...

    def update(self, documents: Sequence[ToolDocument], changed: Sequence[ToolDocument]) -> None:
        """Make the changed tools findable; `documents` is the whole catalog with them in it."""

    def search(self, text: str, count: int) -> list[int]: ...


def write_five_texts(document: ToolDocument) -> dict[str, str]:
    """What an engine that knows words only at spaces is given: names with their underscores taken out."""
    parameters = document.parameters + document.nested
    names = " ".join(name for name, _ in parameters)
    texts = " ".join(text for _, text in parameters)
    values = (document.name, document.server, document.description, names, texts)
    return {field: re.sub(r"[_\W]+", " ", value) for field, value in zip(FIVE_FIELDS, values, strict=True)}


class Ours:
    name = "toolsearch"
    is_on_disk = True

    def __init__(self, encoder: Encoder | None = None) -> None:
        self._encoder = encoder or find_encoder()

    def build(self, documents: Sequence[ToolDocument], folder: Path) -> None:
        our_index.build(folder, documents, self._encoder)
        self.open(folder)

    def open(self, folder: Path) -> None:
        self._folder = folder
        self._engine = SearchEngine(folder, self._encoder)

    def update(self, documents: Sequence[ToolDocument], changed: Sequence[ToolDocument]) -> None:
        our_index.update(self._folder, changed, [], self._encoder)

    def search(self, text: str, count: int) -> list[int]:
        request = SearchRequest(Keywords(text[:QUERY_CHARS]), max_results=count)
        return [hit.id for hit in self._engine.search(request).hits]


class WhooshSearcher:
    name = "whoosh"
    is_on_disk = True

    def build(self, documents: Sequence[ToolDocument], folder: Path) -> None:
        folder.mkdir(parents=True)
        texts = {field: fields.TEXT(analyzer=StemmingAnalyzer(), phrase=False) for field in FIVE_FIELDS}
        schema = fields.Schema(id=fields.ID(unique=True, stored=True), **texts)
        writer = index.create_in(str(folder), schema).writer(limitmb=256)
        for document in documents:
            writer.add_document(id=str(document.id), **write_five_texts(document))
        writer.commit()
        self.open(folder)

    def open(self, folder: Path) -> None:
        self._index = index.open_dir(str(folder))
        self._searcher = self._index.searcher()
        self._parser = MultifieldParser(list(FIVE_FIELDS), self._index.schema, group=OrGroup)

    def update(self, documents: Sequence[ToolDocument], changed: Sequence[ToolDocument]) -> None:
        writer = self._index.writer()
        for document in changed:
            writer.update_document(id=str(document.id), **write_five_texts(document))
        writer.commit(merge=False)
        self._searcher = self._index.searcher()

    def search(self, text: str, count: int) -> list[int]:
        query = self._parser.parse(" ".join(re.findall(r"\w+", text)))
        return [int(hit["id"]) for hit in self._searcher.search(query, limit=count)]


class FastMcpSearch:
    """FastMCP's BM25 search tool, called by a client in the same process."""

    name = "fastmcp"
    is_on_disk = False

    def __init__(self, max_results: int = 5) -> None:
        self._max_results = max_results
        self._runner = asyncio.Runner()
        self._client: Client[Any] | None = None

    def build(self, documents: Sequence[ToolDocument], folder: Path) -> None:
        self._ids: dict[str, int] = {}
        server = FastMCP("catalog")
        for document in documents:
            server.add_tool(self._make_tool(document))
        server.add_transform(BM25SearchTransform(max_results=self._max_results))
        self._runner.run(self._connect(server))

    def open(self, folder: Path) -> None:
        raise NotImplementedError("it lives in memory")

    def update(self, documents: Sequence[ToolDocument], changed: Sequence[ToolDocument]) -> None:
        self.build(documents, Path())

    def search(self, text: str, count: int) -> list[int]:
        assert self._client is not None
        result = self._runner.run(self._client.call_tool("search_tools", {"query": text}))
        found: list[dict[str, Any]] = (result.structured_content or {}).get("result", [])
        return [self._ids[tool["name"]] for tool in found][:count]

    async def _connect(self, server: FastMCP[Any]) -> None:
        if self._client is not None:
            await self._client.close()  # type: ignore[no-untyped-call]
        self._client = Client(server)
        await self._client.__aenter__()  # type: ignore[no-untyped-call]

    def _make_tool(self, document: ToolDocument) -> Tool:
        """Named as a mounted server's tool is; a name that is taken gets a number."""
        name = plain = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{document.server}_{document.name}")
        while name in self._ids:
            name = f"{plain}_{len(self._ids)}"
        self._ids[name] = document.id
        properties = {key: {"description": text} for key, text in document.parameters}
        schema = {"type": "object", "properties": properties}
        return Tool(name=name, description=document.description, parameters=schema)


class Tantivy:
    name = "tantivy"
    is_on_disk = True

    def build(self, documents: Sequence[ToolDocument], folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.open(folder)
        self.update(documents, documents)

    def open(self, folder: Path) -> None:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw")
        for field in FIVE_FIELDS:
            builder.add_text_field(field, tokenizer_name="en_stem")
        self._index = tantivy.Index(builder.build(), path=str(folder))
        self._searcher = self._index.searcher()

    def update(self, documents: Sequence[ToolDocument], changed: Sequence[ToolDocument]) -> None:
        writer = self._index.writer()
        for document in changed:
            writer.delete_documents("id", str(document.id))
            writer.add_document(tantivy.Document(id=str(document.id), **write_five_texts(document)))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, text: str, count: int) -> list[int]:
        query = self._index.parse_query(" ".join(re.findall(r"\w+", text)), list(FIVE_FIELDS))
        hits = self._searcher.search(query, count).hits
        return [int(self._searcher.doc(address)["id"][0]) for _, address in hits]


class Bm25s:
    name = "bm25s"
    is_on_disk = False

    def build(self, documents: Sequence[ToolDocument], folder: Path) -> None:
        self._ids = [document.id for document in documents]
        texts = [" ".join(write_five_texts(document).values()) for document in documents]
        self._model = bm25s.BM25()
        self._model.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def open(self, folder: Path) -> None:
        raise NotImplementedError("it lives in memory")

    def update(self, documents: Sequence[ToolDocument], changed: Sequence[ToolDocument]) -> None:
        self.build(documents, Path())

    def search(self, text: str, count: int) -> list[int]:
        tokens = bm25s.tokenize([text], stopwords="en", show_progress=False, return_ids=False)
        places, _ = self._model.retrieve(tokens, k=min(count, len(self._ids)), show_progress=False)
        return [self._ids[place] for place in places[0]]


PEERS = {each.name: each for each in (Ours, WhooshSearcher, FastMcpSearch, Tantivy, Bm25s)}


def change(document: ToolDocument, word: str) -> ToolDocument:
    return dataclasses.replace(document, description=f"{document.description} {word}")
