"""The tables of the agents' side, one module per subject."""

from sessions.models.agent_sessions import (
    ActivityHour,
    AgentSession,
    AgentSessionQuerySet,
    EventKind,
    LoadedTool,
    SearchEvent,
    SearchEventOutcome,
    SessionEvent,
    Snapshot,
    SnapshotCause,
)
from sessions.models.gateway import (
    BreakerState,
    Call,
    CallOutcome,
    GatewayClient,
    GatewayProcess,
    KeptResult,
    OpenLease,
    UpstreamState,
    Via,
)

__all__ = [
    "ActivityHour",
    "AgentSession",
    "AgentSessionQuerySet",
    "BreakerState",
    "Call",
    "CallOutcome",
    "EventKind",
    "GatewayClient",
    "GatewayProcess",
    "KeptResult",
    "LoadedTool",
    "OpenLease",
    "SearchEvent",
    "SearchEventOutcome",
    "SessionEvent",
    "Snapshot",
    "SnapshotCause",
    "UpstreamState",
    "Via",
]
