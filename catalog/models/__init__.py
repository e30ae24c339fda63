"""The catalog's tables, one module per subject."""

from catalog.models.changes import Change
from catalog.models.jobs import Heartbeat, Job
from catalog.models.policies import Policy
from catalog.models.servers import RefreshRun, Server
from catalog.models.tools import Tool, ToolRevision, ToolTag
from catalog.models.versions import CatalogVersion

__all__ = [
    "CatalogVersion",
    "Change",
    "Heartbeat",
    "Job",
    "Policy",
    "RefreshRun",
    "Server",
    "Tool",
    "ToolRevision",
    "ToolTag",
]
