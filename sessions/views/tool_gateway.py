"""Whether a key can call a tool through the gateway: a card on the tool's page, a page without JavaScript."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from catalog.access.roles import Role, role_of, role_required
from catalog.console.pages import render_page
from catalog.models import ApiKey, Policy, Tool
from catalog.selectors import policies, tools
from sessions.selectors import tool_access
from sessions.selectors.tool_access import Access


@dataclass(frozen=True, slots=True)
class Asker:
    """Who would call: a key, for admins to choose, or any key in force of a policy."""

    policy: Policy
    key: ApiKey | None = None

    def explain(self, tool: Tool) -> Access:
        if self.key is None:
            return tool_access.explain_policy_access(self.policy, tool)
        return tool_access.explain_access(self.key, tool)


@require_GET
@role_required(Role.VIEWER)
def tool_gateway(request: HttpRequest, qualified_name: str) -> HttpResponse:
    tool = tools.find_tool(qualified_name)
    is_admin = role_of(request.user) >= Role.ADMIN
    asker = _find_asker(request.GET.get("for", ""), may_see_keys=is_admin)
    context = {
        "tool": tool,
        "asker": asker,
        "access": asker and asker.explain(tool),
        "policy_slugs": policies.policy_slugs(),
        "keys": tool_access.keys_to_choose(asker.key if asker else None) if is_admin else [],
    }
    return render_page(request, "sessions/tool_gateway.html", "sessions/_tool_gateway.html", context)


def _find_asker(asked: str, *, may_see_keys: bool) -> Asker | None:
    """`key:12` or `policy:slug`; the default policy for anything else."""
    kind, _, which = asked.partition(":")
    if kind == "key" and may_see_keys and which.isascii() and which.isdigit() and len(which) < 10:
        key = ApiKey.objects.select_related("policy").filter(pk=int(which)).first()
        if key is not None:
            return Asker(key.policy, key)
    policy = policies.choose_policy(which if kind == "policy" else "")
    return Asker(policy) if policy else None
