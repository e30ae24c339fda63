"""The one answer to "why can this key not see or call this tool?" through the gateway."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from catalog.domain.approvals import held_by
from catalog.domain.choices import Kind
from catalog.domain.definitions import is_read_only
from catalog.domain.globs import compile_globs
from catalog.models import ApiKey, Policy, Tool
from catalog.selectors.facts import read_facts, read_policy
from catalog.selectors.keys import KeyState, state_of
from sessions.domain.gateway_names import CALL_READ_TOOL
from sessions.offers.gateway_offer import GatewayOffer, GatewayTool, gateway_offer_of

KEY_CHOICES = 200


class AccessCode(StrEnum):
    KEY_REVOKED = "key_revoked"
    KEY_EXPIRED = "key_expired"
    SERVER_DISABLED = "server_disabled"
    TOOL_REMOVED = "tool_removed"
    TOOL_HIDDEN = "tool_hidden"
    NOT_VISIBLE = "not_visible"
    LOCKED = "locked"
    SNAPSHOT = "snapshot"
    BUILTIN = "builtin"
    NOT_DECIDED = "not_decided"
    LISTED = "listed"
    FOUND = "found"


@dataclass(frozen=True, slots=True)
class Access:
    """`text` is one sentence, `fix_url` the page where it is mended and `fix` the words of the link there;
    both are empty where nothing is to mend. `name` is what clients call the tool by, empty where they cannot.
    """

    can_call: bool
    code: AccessCode
    text: str
    fix: str = ""
    fix_url: str = ""
    name: str = ""


def explain_access(key: ApiKey, tool: Tool, *, now: datetime | None = None) -> Access:
    """Of the tool as it is stored now; `server` should be read with it."""
    state = state_of(key, now=now or timezone.now())
    if state is KeyState.REVOKED:
        return _deny(AccessCode.KEY_REVOKED, "The key is revoked.", "Create another", reverse("key_list"))
    if state is KeyState.EXPIRED:
        return _deny(AccessCode.KEY_EXPIRED, "The key has expired.", "Create another", reverse("key_list"))
    return explain_policy_access(key.policy, tool)


def explain_policy_access(policy: Policy, tool: Tool) -> Access:
    """The same for any key in force of the policy."""
    denied = next(_find_reasons(policy, tool), None)
    if denied is not None:
        return denied
    offer = gateway_offer_of(policy.pk)
    offered = offer.by_name.get(tool.qualified_name)
    if offered is None:
        why = "The tool has just changed, and is being decided under the policy."
        return _deny(AccessCode.NOT_DECIDED, why, "The policy", policy.get_absolute_url())
    return _allow(policy, tool, offer, offered)


def keys_to_choose(chosen: ApiKey | None) -> list[ApiKey]:
    """The first by name, those in force before others, and the chosen one."""
    first = ApiKey.objects.select_related("policy").order_by(
        F("revoked_at").desc(nulls_first=True), "name", "pk"
    )
    keys = list(first[:KEY_CHOICES])
    return keys if chosen is None or chosen in keys else [chosen, *keys]


def _find_reasons(policy: Policy, tool: Tool) -> Iterator[Access]:
    """What stands in the way, the widest first."""
    server = tool.server
    if not server.enabled:
        why = f"Its server {server.name} is disabled."
        yield _deny(AccessCode.SERVER_DISABLED, why, "The server", server.get_absolute_url())
    if tool.gone_at is not None:
        why = f"Its server {server.name} does not list it any more."
        yield _deny(AccessCode.TOOL_REMOVED, why, "The server", server.get_absolute_url())
    if tool.hidden:
        why = "The tool is hidden."
        yield _deny(AccessCode.TOOL_HIDDEN, why, "Its settings", f"{tool.get_absolute_url()}#settings")
    yield from _find_reasons_of_policy(policy, tool)
    if server.kind == Kind.BUILTIN:
        yield _deny(AccessCode.BUILTIN, "It is built into an agent, which calls it by itself.")
    if server.is_snapshot:
        why = f"Its server {server.name} is a file of definitions: there is nothing to call."
        yield _deny(AccessCode.SNAPSHOT, why, "Add the server itself", reverse("server_add"))


def _find_reasons_of_policy(policy: Policy, tool: Tool) -> Iterator[Access]:
    rules = read_policy(policy)
    facts = next((known.facts for known in read_facts(Tool.objects.filter(pk=tool.pk))), None)
    if rules.visible is not None and (facts is None or not compile_globs(rules.visible)(facts)):
        why = f"The policy {policy.slug} does not show it: no pattern of its visible tools matches."
        yield _deny(AccessCode.NOT_VISIBLE, why, "The policy", policy.get_absolute_url())
    if tool.approval in held_by(rules.quarantine):
        why = f"Quarantine in the policy {policy.slug} locks it until an admin approves the definition."
        yield _deny(AccessCode.LOCKED, why, "Review", reverse("review"))


def _deny(code: AccessCode, text: str, fix: str = "", fix_url: str = "") -> Access:
    return Access(can_call=False, code=code, text=text, fix=fix, fix_url=fix_url)


def _allow(policy: Policy, tool: Tool, offer: GatewayOffer, offered: GatewayTool) -> Access:
    is_listed = offer.lists(offered)
    how = "It is listed" if is_listed else "It is found by search"
    reads = is_read_only(tool.read_only, tool.annotations)
    also = "takes it too, since it only reads" if reads else "refuses it, since it may change things"
    return Access(
        can_call=True,
        code=AccessCode.LISTED if is_listed else AccessCode.FOUND,
        text=f"{how}; {CALL_READ_TOOL} {also}.",
        fix="What a client gets",
        fix_url=f"{reverse('agent_answer', args=[policy.slug])}?format=gateway",
        name=offered.name,
    )
