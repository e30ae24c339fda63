"""Pages that belong to no app: the overview, and the sign of life."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET


@login_not_required
@require_GET
def alive(request: HttpRequest) -> HttpResponse:
    """The process answers. Whether it can serve is said by `/api/v1/health`."""
    return HttpResponse("ok\n", content_type="text/plain")
