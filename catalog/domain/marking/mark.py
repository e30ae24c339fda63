"""One mark: what was found, in which field and where, and what it means."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from catalog.domain.limits import MARKING_FINDS

MASK = "•••"  # replaces a secret


class MarkKind(StrEnum):
    INSTRUCTION = "instruction"
    TAGS = "tags"
    INVISIBLE = "invisible"
    DIRECTION = "direction"
    CONTROL = "control"
    MARKUP = "markup"
    ENCODED = "encoded"
    LOOK_ALIKE = "look_alike"
    LONG = "long"
    SECRET = "secret"  # noqa: S105  a kind


MARK_WORDS: Mapping[MarkKind, str] = {
    MarkKind.INSTRUCTION: "Looks like an instruction to the model",
    MarkKind.TAGS: "Hidden text in tag characters",
    MarkKind.INVISIBLE: "Invisible characters",
    MarkKind.DIRECTION: "Characters that turn the reading direction",
    MarkKind.CONTROL: "Control characters",
    MarkKind.MARKUP: "Markup in place of plain text",
    MarkKind.ENCODED: "A long encoded text",
    MarkKind.LOOK_ALIKE: "Letters that look like others",
    MarkKind.LONG: "Unusually long text",
    MarkKind.SECRET: "A secret of its server, masked",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """`field` is a path such as `inputSchema.properties.city.description`, `at` the place of the first find
    in it, in characters; `count` says how many there are, up to `MARKING_FINDS`, `found` is the first, cut.
    """

    kind: MarkKind
    field: str
    at: int
    count: int
    found: str

    @property
    def words(self) -> str:
        return MARK_WORDS[self.kind]

    @property
    def others(self) -> str:
        """How many there are beside the first, as text; empty where there is none."""
        at_least = "at least " if self.count >= MARKING_FINDS else ""
        return f"{at_least}{self.count - 1:,} more" if self.count > 1 else ""

    def to_mapping(self) -> dict[str, Any]:
        return {**asdict(self), "kind": str(self.kind)}

    @classmethod
    def from_mapping(cls, kept: Mapping[str, Any]) -> "Mark":
        return cls(MarkKind(kept["kind"]), kept["field"], kept["at"], kept["count"], kept["found"])
