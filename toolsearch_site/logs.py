"""Log formatters: one line per record, as text or JSON, whatever a message contains."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from toolsearch_site.edge.request_ids import request_id

CONTROL_CHARACTERS = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), 127)} | {
    10: "\\n",
    13: "\\r",
}


class OneLineFormatter(logging.Formatter):
    """Escapes control characters in the message, so that no input can forge a second record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the base class's name
        record.message = record.message.translate(CONTROL_CHARACTERS)
        own = request_id.get()
        return super().formatMessage(record) + (f" [{own}]" if own else "")

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """Indents a traceback's lines, so that none can be taken for a record."""
        lines = super().formatException(ei).splitlines()
        return "\n".join("    " + line.translate(CONTROL_CHARACTERS) for line in lines)


class JsonFormatter(logging.Formatter):
    """One JSON object per record, traceback included."""

    def __init__(self, *, node: str) -> None:
        super().__init__()
        self._node = node

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "node": self._node,
            "process": record.process,
        }
        if own := request_id.get():
            fields["request_id"] = own
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def logging_settings(*, debug: bool, form: str = "lines", node: str = "") -> dict[str, Any]:
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lines": {
                "()": OneLineFormatter,
                "format": "{asctime} {levelname} {name}: {message}",
                "datefmt": "%H:%M:%S",
                "style": "{",
            },
            "json": {"()": JsonFormatter, "node": node},
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": form}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            "django.request": {"level": "ERROR"},
            "django.db.backends": {"level": "INFO"},
            "catalog": {"level": "DEBUG" if debug else "INFO"},
            # A line for each beat, task or connection would hide the lines that matter.
            "celery.beat": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "psycopg.pool": {"level": "WARNING"},
            "mcp": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
        },
    }
