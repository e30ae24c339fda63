"""The closed sets of values that the contract defines."""

from enum import StrEnum


class Kind(StrEnum):
    MCP = "mcp"
    BUILTIN = "builtin"
    PLUGIN = "plugin"


class Transport(StrEnum):
    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"
    SNAPSHOT = "snapshot"


class Loading(StrEnum):
    """An admin's setting on one tool."""

    INHERIT = "inherit"
    ALWAYS = "always"
    DEFER = "defer"


class Mode(StrEnum):
    ALWAYS = "always"
    AUTO = "auto"
    OFF = "off"


class ThresholdUnit(StrEnum):
    CHARS = "chars"
    TOKENS = "tokens"
    TOOLS = "tools"
    CONTEXT_PERCENT = "context_percent"
    CONTEXT_USED = "context_used"


class Ranker(StrEnum):
    BM25F = "bm25f"
    KEYWORD = "keyword"
    OVERLAP = "overlap"


class PromptStyle(StrEnum):
    CATEGORIES = "categories"
    NAMES = "names"
    NAMES_AND_DESCRIPTIONS = "names_and_descriptions"


class Quarantine(StrEnum):
    OFF = "off"
    CHANGED = "changed"
    NEW_AND_CHANGED = "new_and_changed"


class Exposure(StrEnum):
    """How the gateway lists a policy's tools to MCP clients."""

    SEARCH = "search"
    NATIVE = "native"


class RecordCalls(StrEnum):
    """What a call through the gateway leaves behind: names and figures, or arguments and results too."""

    NAMES = "names"
    FULL = "full"


class ReadOnly(StrEnum):
    """An admin's mark whether a tool only reads: kept as a truth, or null where the definition says it."""

    INHERIT = "inherit"
    YES = "yes"
    NO = "no"

    @classmethod
    def of(cls, mark: bool | None) -> "ReadOnly":
        return {None: cls.INHERIT, True: cls.YES, False: cls.NO}[mark]

    @property
    def mark(self) -> bool | None:
        return None if self is ReadOnly.INHERIT else self is ReadOnly.YES


class Approval(StrEnum):
    """Whether a definition is new, approved, or changed since its approval."""

    NEW = "new"
    APPROVED = "approved"
    CHANGED = "changed"


class Outcome(StrEnum):
    """The decision for one tool."""

    LOAD = "load"
    DEFER = "defer"


class Reason(StrEnum):
    """The ids of the deciding rules, in their order; `discovered` is for sessions."""

    SEARCH_TOOL = "search_tool"
    SEARCH_OFF = "search_off"
    NEVER_DEFER = "never_defer"
    ALWAYS_DEFER = "always_defer"
    TOOL_ALWAYS = "tool_always"
    TOOL_DEFER = "tool_defer"
    SERVER_DEFER = "server_defer"
    META_ALWAYS_LOAD = "meta_always_load"
    SERVER_LOAD = "server_load"
    BUILTIN = "builtin"
    MODE_ALWAYS = "mode_always"
    OVER_THRESHOLD = "over_threshold"
    UNDER_THRESHOLD = "under_threshold"
    UNCERTAIN = "uncertain"
    DISCOVERED = "discovered"


class AuthKind(StrEnum):
    """How this service proves to a server who it is."""

    NONE = "none"
    HEADERS = "headers"
    OAUTH = "oauth"
    CLIENT_CREDENTIALS = "client_credentials"


class AuthState(StrEnum):
    NONE = "none"
    SIGN_IN_NEEDED = "sign_in_needed"
    CONNECTED = "connected"
    RECONNECT_NEEDED = "reconnect_needed"
    SCOPE_NEEDED = "scope_needed"
