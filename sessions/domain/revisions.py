"""The revisions of MCP that the gateway speaks."""

from enum import StrEnum


class Revision(StrEnum):
    NOVEMBER_2024 = "2024-11-05"
    MARCH_2025 = "2025-03-26"
    JUNE_2025 = "2025-06-18"
    NOVEMBER_2025 = "2025-11-25"
    JULY_2026 = "2026-07-28"

    @property
    def is_modern(self) -> bool:
        """Whether each request stands for itself, and results say how they may be cached."""
        return self is Revision.JULY_2026
