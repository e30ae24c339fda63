"""The change record."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from catalog.access import Role, role_required
from catalog.forms import ChangeFilterForm
from catalog.selectors import changes
from catalog.views.pages import render_page


@require_GET
@role_required(Role.VIEWER)
def change_list(request: HttpRequest) -> HttpResponse:
    form = ChangeFilterForm(request.GET)
    wanted = form.wanted()
    context = {
        "form": form,
        "wanted": wanted,
        "page": changes.changes_for_table(wanted, page=request.GET.get("page", "1")),
        "actors": changes.known_actors,
    }
    return render_page(request, "catalog/change_list.html", "catalog/_change_table.html", context)
