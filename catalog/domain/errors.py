"""Everything the engine raises on purpose. The API and the commands turn each into an answer once."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One mistake and where it is: `policy.threshold`, `mcpServers.github.args[1]`."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class ToolSearchError(Exception):
    """Base of the tree. `status` is the HTTP status, `title` the short name of the problem."""

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"


class NotAllowed(ToolSearchError):
    status = 403
    title = "Not allowed"


class NotFound(ToolSearchError):
    status = 404
    title = "Not found"


class Conflict(ToolSearchError):
    status = 409
    title = "Conflict"


class TooLarge(ToolSearchError):
    status = 413
    title = "Too large"


class InvalidInput(ToolSearchError):
    """Input that cannot be used, with every mistake that was found in it."""

    status = 422
    title = "Invalid input"

    def __init__(self, errors: Iterable[FieldProblem]) -> None:
        self.errors: tuple[FieldProblem, ...] = tuple(errors)
        super().__init__("; ".join(str(problem) for problem in self.errors))

    @classmethod
    def at(cls, place: str, message: str) -> "InvalidInput":
        """The usual case: one mistake at one place."""
        return cls((FieldProblem(place, message),))


class Unavailable(ToolSearchError):
    status = 503
    title = "Unavailable"
