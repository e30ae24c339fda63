"""The page for who runs the deployment."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from catalog.access import Role, role_required
from catalog.selectors import health
from catalog.views.pages import render_page
from toolsearch_site.system import read_system
from toolsearch_site.versions import read_versions


@require_GET
@role_required(Role.ADMIN)
def system(request: HttpRequest) -> HttpResponse:
    """Asked for again every few seconds while somebody looks."""
    context = {"system": read_system(), "health": health.read_health(), "versions": read_versions()}
    page, part = "toolsearch_site/system.html", "toolsearch_site/_system_live.html"
    return render_page(request, page, part, context)
