"""Request and response bodies of refreshes."""

from datetime import datetime
from typing import Any, Literal

from ninja import Schema

from catalog.models.jobs import JobState
from catalog.request_bodies import example


class RunOut(Schema):
    """One attempt. `error_code` is empty for one that succeeded; `rejected_more` were kept out too."""

    started_at: datetime
    finished_at: datetime
    added: int
    changed: int
    gone: int
    unchanged: int
    rejected: list[dict[str, Any]]
    rejected_more: int
    error_code: str
    error: str


class RefreshOut(Schema):
    """`state` of the last refresh that was asked for, and what the last one that ended did."""

    model_config = example(
        {"server": "github", "state": "waiting", "attempts": 0, "error": "", "last_run": None}
    )

    server: str
    state: JobState | Literal["never"]
    attempts: int
    error: str
    last_run: RunOut | None
