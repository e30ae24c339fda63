"""`/healthz`: the process answers. Whether it can serve is said by `/api/v1/health`."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

PATH = "/healthz"


def sign_of_life(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware, and the first: a load balancer asks by address, whatever host names the site answers to."""

    def answer(request: HttpRequest) -> HttpResponse:
        if request.path == PATH:
            return HttpResponse("ok\n", content_type="text/plain")
        return get_response(request)

    return answer
