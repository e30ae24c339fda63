"""The System page."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from catalog.access.roles import Role, role_required
from catalog.console.pages import render_page
from catalog.selectors import health
from toolsearch_site.monitoring.system import read_system
from toolsearch_site.monitoring.versions import read_software_versions


@require_GET
@role_required(Role.ADMIN)
def system(request: HttpRequest) -> HttpResponse:
    """The System page; its part is polled every few seconds."""
    context = {"system": read_system(), "health": health.read_health(), "versions": read_software_versions()}
    page, part = "toolsearch_site/system.html", "toolsearch_site/_system_live.html"
    return render_page(request, page, part, context)
