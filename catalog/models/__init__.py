"""The catalog's tables, one module per subject."""

from catalog.models.changes import Change, LastSeal
from catalog.models.decisions import DecidedList, Decision
from catalog.models.jobs import Heartbeat, Job
from catalog.models.keys import ApiKey, Scope
from catalog.models.model_support import ModelSupport
from catalog.models.oauth import OAuthAttempt, OAuthClient, OAuthGrant
from catalog.models.policies import Policy, PolicyVersion
from catalog.models.saved_queries import SavedQuery, SavedResult, SavedRun
from catalog.models.servers import RefreshRun, Server, ServerFeatures
from catalog.models.tools import Tool, ToolRevision, ToolTag
from catalog.models.vectors import EncoderState, ToolVector
from catalog.models.versions import CatalogVersion

__all__ = [
    "ApiKey",
    "CatalogVersion",
    "Change",
    "DecidedList",
    "Decision",
    "EncoderState",
    "Heartbeat",
    "Job",
    "LastSeal",
    "ModelSupport",
    "OAuthAttempt",
    "OAuthClient",
    "OAuthGrant",
    "Policy",
    "PolicyVersion",
    "RefreshRun",
    "SavedQuery",
    "SavedResult",
    "SavedRun",
    "Scope",
    "Server",
    "ServerFeatures",
    "Tool",
    "ToolRevision",
    "ToolTag",
    "ToolVector",
]
