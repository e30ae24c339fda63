"""Every error that the engine raises on purpose. API and commands map each to an answer in one place."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

RETRY_AFTER_SECONDS = 2  # the `Retry-After` of a 503


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


class LengthRequired(ToolSearchError):
    status = 411
    title = "Length required"


@dataclass(frozen=True, slots=True)
class ChangedField:
    """A field that somebody else has changed: its current value, unless secret, who and when."""

    field: str
    value: object
    is_shown: bool = True
    actor: str = ""
    at: datetime | None = None

    def __str__(self) -> str:
        return f"{self.field} by {self.actor}" if self.actor else self.field


class OutdatedEdit(ToolSearchError):
    """An edit of something that has changed since it was read. `version` is the current one."""

    status = 412
    title = "Precondition failed"

    def __init__(
        self, name: str, changed: tuple[ChangedField, ...], *, version: str, reason: str = ""
    ) -> None:
        self.changed, self.version = changed, version
        fields = ", ".join(str(field) for field in changed)
        super().__init__(reason or f"{name} has changed since it was read{': ' if fields else ''}{fields}")


class TooLarge(ToolSearchError):
    status = 413
    title = "Too large"


class InvalidInput(ToolSearchError):
    """Invalid input, with every mistake in it."""

    status = 422
    title = "Invalid input"

    def __init__(self, errors: Iterable[FieldProblem], *, detail: str | None = None) -> None:
        """`detail` says in one sentence what is wrong; by default the mistakes themselves do."""
        self.errors: tuple[FieldProblem, ...] = tuple(errors)
        super().__init__(detail or "; ".join(str(problem) for problem in self.errors))

    @classmethod
    def at(cls, place: str, message: str) -> "InvalidInput":
        """The usual case: one mistake at one place."""
        return cls((FieldProblem(place, message),))


class Unavailable(ToolSearchError):
    status = 503
    title = "Unavailable"
