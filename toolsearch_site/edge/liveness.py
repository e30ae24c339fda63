"""The `/healthz` liveness probe: the process answers. `/api/v1/health` says whether it can serve."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

PATH = "/healthz"


def answer_liveness(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware, and the first: load balancers ask by IP address, so ALLOWED_HOSTS must not apply."""

    def answer(request: HttpRequest) -> HttpResponse:
        if request.path == PATH:
            return HttpResponse("ok\n", content_type="text/plain")
        return get_response(request)

    return answer
