"""One line per log record, whatever a server or a user put into it."""

import logging
from typing import Any

CONTROL_CHARACTERS = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), 127)} | {
    10: "\\n",
    13: "\\r",
}


class OneLineFormatter(logging.Formatter):
    """Escapes control characters in the message, so that no name can forge a second record."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the base class's name
        record.message = record.message.translate(CONTROL_CHARACTERS)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """A traceback keeps its lines, but set in: none can be taken for a record."""
        lines = super().formatException(ei).splitlines()
        return "\n".join("    " + line.translate(CONTROL_CHARACTERS) for line in lines)


def logging_settings(*, debug: bool) -> dict[str, Any]:
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": OneLineFormatter,
                "format": "{asctime} {levelname} {name}: {message}",
                "datefmt": "%H:%M:%S",
                "style": "{",
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            "django.request": {"level": "ERROR"},
            "django.db.backends": {"level": "INFO"},
            "catalog": {"level": "DEBUG" if debug else "INFO"},
            # One line for each beat and each task would bury what an operator looks for.
            "celery.beat": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "mcp": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
        },
    }
