"""The test console: what a search of the catalog finds, and why."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from catalog.access import Role, role_required
from catalog.domain.errors import InvalidInput, Unavailable
from catalog.selectors import hits
from catalog.services import search
from catalog.views.pages import render_page
from sessions.forms import ConsoleForm


@require_GET
@role_required(Role.VIEWER)
def console(request: HttpRequest) -> HttpResponse:
    """An empty query shows how to ask; a mistake in the query is told beside it."""
    form = ConsoleForm(request.GET)
    query = form.asked_query()
    context: dict[str, object] = {"form": form}
    status = 200
    if query.strip():
        try:
            outcome = search.search_catalog(query=query, ranker=form.asked_ranker(), limit=form.asked_limit())
        except (InvalidInput, Unavailable) as problem:
            context["problem"], status = problem, problem.status
        else:
            context["found"] = hits.explain_outcome(outcome)
    page, part = "sessions/console.html", "sessions/_console_results.html"
    return render_page(request, page, part, context, status=status)
