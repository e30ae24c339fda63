"""Each deciding rule in a reader's words: they finish the sentences `Loads: …` and `Deferred: …`."""

from collections.abc import Mapping

from catalog.domain.choices import Reason

REASON_WORDS: Mapping[Reason, str] = {
    Reason.SEARCH_TOOL: "it is the search tool",
    Reason.SEARCH_OFF: "search is off in this policy",
    Reason.NEVER_DEFER: "a never-defer pattern matches it",
    Reason.ALWAYS_DEFER: "an always-defer pattern matches it",
    Reason.TOOL_ALWAYS: "the tool is set to always load",
    Reason.TOOL_DEFER: "the tool is set to defer",
    Reason.SERVER_DEFER: "its server is set to defer",
    Reason.META_ALWAYS_LOAD: "its definition asks to be loaded",
    Reason.SERVER_LOAD: "its server is set to load",
    Reason.BUILTIN: "built-in tools load",
    Reason.MODE_ALWAYS: "the policy always defers",
    Reason.OVER_THRESHOLD: "the tools are over the threshold",
    Reason.UNDER_THRESHOLD: "the tools are under the threshold",
    Reason.UNCERTAIN: "the size cannot be told, so it loads",
    Reason.DISCOVERED: "a search found it",
}
# Sessions alone discover, and the search tool is in no catalog: neither is in a policy's decided list.
KEPT_REASONS = tuple(reason for reason in Reason if reason not in {Reason.DISCOVERED, Reason.SEARCH_TOOL})
