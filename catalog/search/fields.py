"""The fields of a tool, their weights, and the texts of a document by field."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from catalog.search.documents import ToolDocument


@dataclass(frozen=True, slots=True)
class SearchField:
    """`weight` is what one word counts; `length_share` (BM25's b) how much a long text reduces it."""

    name: str
    weight: float
    length_share: float


FIELDS = (
    SearchField("name", 3.0, 0.7),
    SearchField("server", 1.5, 0.5),
    SearchField("title", 1.5, 0.75),
    SearchField("description", 1.0, 0.75),
    SearchField("parameter_names", 0.7, 0.75),
    SearchField("parameter_descriptions", 0.5, 0.75),
    SearchField("keywords", 2.0, 0.5),
    SearchField("hint", 2.0, 0.5),
    SearchField("qualified_name", 0.0, 0.0),  # what `+word` looks at; it ranks nothing
)
FIELD_NAMES = tuple(field.name for field in FIELDS)
QUALIFIED_NAME = FIELD_NAMES.index("qualified_name")


def field_texts(document: ToolDocument) -> tuple[str, ...]:
    """The texts of a document in the order of `FIELDS`."""
    parameters = document.parameters + document.nested
    return (
        document.name,
        document.server,
        document.title,
        document.description,
        " ".join(name for name, _ in parameters),
        " ".join(description for _, description in parameters),
        document.keywords,
        document.hint,
        " ".join(dict.fromkeys((document.qualified_name, document.server, document.name))),
    )


def spoken_texts(document: ToolDocument) -> Iterator[str]:
    """The texts whose words serve as spelling suggestions."""
    names = (name for name, _ in document.parameters)
    return chain(
        (document.name, document.server, document.title, document.description, document.keywords), names
    )
