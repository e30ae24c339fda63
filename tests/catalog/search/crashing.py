"""The processes of the tests of crashes and of many readers. Run as a module, with a role and a folder."""

import sys
from itertools import count
from pathlib import Path

from catalog.domain.query import parse_query
from catalog.search import index
from catalog.search.documents import ToolDocument
from catalog.search.engine import SearchEngine
from catalog.search.request import SearchRequest
from tests.catalog.search.samples import make_tool

SIZE = 30


def make_tools(version: int) -> list[ToolDocument]:
    """A catalog all of whose tools carry the same version: a mixture of two is a torn one."""
    return [make_tool(number, "s", f"tool{number}", f"common version{version}") for number in range(SIZE)]


def say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def build_for_ever(folder: Path) -> None:
    for version in count(1):
        index.build(folder, make_tools(version), None)
        say(version)


def update_for_ever(folder: Path) -> None:
    for version in count(1):
        index.update(folder, make_tools(version), [], None)
        say(version)


def update_often(folder: Path) -> None:
    for version in range(1, 41):
        index.update(folder, make_tools(version), [], None)


def read_until_told(folder: Path) -> None:
    """Search until the file `stop` appears; fail on any error and on any torn result."""
    engine = SearchEngine(folder, None)
    say("reading")
    searches = 0
    while not (folder.parent / "stop").exists():
        searches += 1
        outcome = engine.search(SearchRequest(parse_query("common"), max_results=50))
        compiled = engine.snapshot().compiled
        if len(outcome.hits) != SIZE or len(set(compiled.descriptions)) != 1:
            sys.exit(f"torn: {len(outcome.hits)} hits of {set(compiled.descriptions)}")
    say(searches)


ROLES = {each.__name__: each for each in (build_for_ever, update_for_ever, update_often, read_until_told)}

if __name__ == "__main__":
    ROLES[sys.argv[1]](Path(sys.argv[2]))
