"""The page that connects an agent: snippets to copy, and the first call as it arrives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from catalog.access.roles import Role, role_of, role_required
from catalog.console.pages import wants_part
from catalog.console.seen import NOTHING_NEW
from catalog.models import ApiKey, Policy
from catalog.selectors import keys
from catalog.selectors.policies import choose_policy
from catalog.selectors.query_examples import read_examples
from catalog.views.new_keys import take_new_key
from sessions.domain.gateway_clients import CLIENTS, ClientGroup, KnownClient, Way
from sessions.domain.snippets import GUIDES, KEY_PLACEHOLDER, Guide
from sessions.selectors.last_calls import read_last_call
from sessions.views.gateway_address import gateway_address

FIRST_QUERY = "what can you do"  # before there are tools whose names make an example


@dataclass(frozen=True, slots=True)
class GuideTab:
    """One way to connect, everything filled in."""

    slug: str
    label: str
    explanation: str
    ways: Sequence[Way]
    check: str = ""


@dataclass(frozen=True, slots=True)
class TabGroup:
    label: str
    tabs: Sequence[GuideTab]


@dataclass(frozen=True, slots=True)
class Filling:
    """What the snippets are filled with. The hosts in the addresses are ones that we answer to, and the query
    consists of plain words: all of it becomes code that somebody runs.
    """

    api: str
    gateway: str
    key: str
    query: str

    def tab_of_client(self, client: KnownClient) -> GuideTab:
        ways = [way.fill(address=self.gateway, key=self.key, query=self.query) for way in client.ways]
        return GuideTab(client.slug, client.label, client.notes, ways, client.check)

    def tab_of_guide(self, guide: Guide) -> GuideTab:
        text = guide.fill(address=self.api, key=self.key, query=self.query)
        return GuideTab(guide.slug, guide.label, guide.explanation, [Way("", guide.install, text)])


@never_cache
@require_GET
@role_required(Role.VIEWER)
def connect(request: HttpRequest) -> HttpResponse:
    """Its part is the line that waits for the first call, of one key for admins, else of any.

    Right after a key was made, and only then, its text is in the snippets.
    """
    key = _find_key(request)
    call = read_last_call(key, now=timezone.now())
    context: dict[str, object] = {"key": key, "call": call}
    if wants_part(request):
        if call is None:
            return HttpResponse(status=NOTHING_NEW)
        return render(request, "toolsearch_site/_connect_call.html", context)
    new_text = take_new_key(request, key.pk) if key else ""
    groups = list(_group_tabs(_fill(request, new_text, key.policy if key else choose_policy(""))))
    slugs = [tab.slug for group in groups for tab in group.tabs]
    asked = request.GET.get("client", "")
    context |= {
        "new_text": new_text,
        "placeholder": KEY_PLACEHOLDER,
        "groups": groups,
        "chosen": asked if asked in slugs else slugs[0],
    }
    return render(request, "toolsearch_site/connect.html", context)


def _find_key(request: HttpRequest) -> ApiKey | None:
    """The key that the page was opened for. Keys are for admins to see: others wait for any call."""
    asked = request.GET.get("key", "")
    if role_of(request.user) < Role.ADMIN or not (asked.isascii() and asked.isdigit() and len(asked) < 10):
        return None
    return keys.find_key(int(asked))


def _fill(request: HttpRequest, new_text: str, policy: Policy | None) -> Filling:
    examples = read_examples(policy) if policy else None
    return Filling(
        api=request.build_absolute_uri("/").rstrip("/"),
        gateway=gateway_address(request),
        key=new_text or KEY_PLACEHOLDER,
        query=examples.keywords if examples else FIRST_QUERY,
    )


def _group_tabs(filling: Filling) -> Iterator[TabGroup]:
    """Those that need no code come first."""
    for label, group in (("MCP clients", ClientGroup.CLIENT), ("Frameworks", ClientGroup.FRAMEWORK)):
        of_group = [client for client in CLIENTS if client.group is group]
        yield TabGroup(label, [filling.tab_of_client(client) for client in of_group])
    yield TabGroup("REST API", [filling.tab_of_guide(guide) for guide in GUIDES])
