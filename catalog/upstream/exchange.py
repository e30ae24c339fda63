"""What the transport saw of one request: the session tells too little of it."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

import httpx2

from catalog.domain.connection import UpstreamFailure


@dataclass(slots=True)
class Exchange:
    """One request and the answer to it.

    `abort` ends the wait for an answer; it is set where the SDK would wait for ever after a failure.
    """

    can_abort: bool = False
    abort: Callable[[], None] | None = None
    failure: UpstreamFailure | None = None
    answer: httpx2.Response | None = None
    was_sent: bool = False
    is_posted: bool = False
    is_session_lost: bool = False
    is_error_answer: bool = False  # an error status came with a JSON-RPC error

    def fail(self, failure: UpstreamFailure) -> None:
        """Keep the first failure, because later ones follow from it."""
        self.failure = self.failure or failure
        if self.abort:
            self.abort()

    def takes_post(self) -> bool:
        """Whether a post is this request's: the first one, or one after a redirect.

        Others in the same task answer the server's own requests, or take the request back.
        """
        was_posted, self.is_posted = self.is_posted, True
        return not was_posted or (self.answer is not None and self.answer.has_redirect_location)

    @property
    def may_have_run(self) -> bool:
        return self.was_sent and not self.is_session_lost


# Set while a lease sends a request. The SDK carries it over to the task that posts the request.
current_exchange: ContextVar[Exchange | None] = ContextVar("current_exchange", default=None)
