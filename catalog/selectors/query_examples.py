"""Examples of queries, made of the names of tools that a policy shows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from catalog.models import Policy, Tool

LOOKED_AT = 50
_WORD = re.compile(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+|[0-9]+")
# A name that can stand in a query, a pattern and a snippet as it is.
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class QueryExamples:
    """One query of each form that finds something; `select` names one tool or two."""

    keywords: str
    required: str
    select: str
    pattern: str


def read_examples(policy: Policy) -> QueryExamples | None:
    """None while the policy shows no tool with a name that an example can be made of."""
    shown = Tool.objects.listed().filter(decisions__policy=policy).order_by("qualified_name")
    rows = shown.values_list("name", "server__name")[:LOOKED_AT]
    named = [(tool, server) for tool, server in rows if _PLAIN.fullmatch(tool) and _words(tool)]
    if not named:
        return None
    # The first name of several words says most.
    tool, server = next((one for one in named if len(_words(one[0])) > 1), named[0])
    words = _words(tool)
    other = next((name for name, of in named if of == server and name != tool), "")
    return QueryExamples(
        keywords=" ".join(words),
        required=" ".join([f"+{_first_word(server, words)}", *words]),
        select="select:" + ",".join(filter(None, (tool, other))),
        pattern=f"^{re.escape(_own_first(tool))}",
    )


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _first_word(server: str, otherwise: Sequence[str]) -> str:
    """Every `+word` must be a word of the qualified name, which holds the server's."""
    words = _words(server) if _PLAIN.fullmatch(server) else []
    return words[0] if words else otherwise[0]


def _own_first(tool: str) -> str:
    """The beginning of a name, up to its first separator."""
    return re.split(r"[_-]", tool.lstrip("_-"), maxsplit=1)[0]
