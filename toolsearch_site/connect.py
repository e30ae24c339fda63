"""The page that connects an agent: snippets to copy, and the first call as it arrives."""

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
from sessions.domain.snippets import GUIDES, KEY_PLACEHOLDER
from sessions.selectors.last_calls import read_last_call

FIRST_QUERY = "what can you do"  # before there are tools whose names make an example


@dataclass(frozen=True, slots=True)
class GuideTab:
    slug: str
    label: str
    explanation: str
    install: str
    text: str


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
    context |= {
        "new_text": new_text,
        "placeholder": KEY_PLACEHOLDER,
        "tabs": _fill_tabs(request, new_text, key.policy if key else choose_policy("")),
    }
    return render(request, "toolsearch_site/connect.html", context)


def _find_key(request: HttpRequest) -> ApiKey | None:
    """The key that the page was opened for. Keys are for admins to see: others wait for any call."""
    asked = request.GET.get("key", "")
    if role_of(request.user) < Role.ADMIN or not (asked.isascii() and asked.isdigit() and len(asked) < 10):
        return None
    return keys.find_key(int(asked))


def _fill_tabs(request: HttpRequest, new_text: str, policy: Policy | None) -> list[GuideTab]:
    """The host in the address is one that we answer to, and the query consists of plain words: both become
    code that somebody runs.
    """
    address = request.build_absolute_uri("/").rstrip("/")
    examples = read_examples(policy) if policy else None
    query = examples.keywords if examples else FIRST_QUERY
    key = new_text or KEY_PLACEHOLDER
    return [
        GuideTab(
            slug=guide.slug,
            label=guide.label,
            explanation=guide.explanation,
            install=guide.install,
            text=guide.fill(address=address, key=key, query=query),
        )
        for guide in GUIDES
    ]
