"""Where a provider sends the browser back to after somebody has signed in there."""

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port

# The other name of the same machine: cookies tell them apart, and so do providers.
TWINS = {"localhost": "127.0.0.1", "127.0.0.1": "localhost", "[::1]": ""}
PUBLIC_URL_MISSING = (
    "A provider has to know where to send your browser back to: set TOOLSEARCH_PUBLIC_URL to the address of"
    " this console, as in https://tools.example.com, and start it again"
)


def find_callbacks(request: HttpRequest) -> tuple[str, ...]:
    """The address to come back to, then others that are as good; none where it is not known.

    It is the settings' to say. Without them only a browser on this machine is believed to be where it says.
    """
    if settings.PUBLIC_URL:
        return (f"{settings.PUBLIC_URL}{settings.SIGN_IN_CALLBACK}",)
    host, port = split_domain_port(request.get_host())
    if host not in TWINS:
        return ()
    ending = f":{port}{settings.SIGN_IN_CALLBACK}" if port else settings.SIGN_IN_CALLBACK
    return tuple(f"{request.scheme}://{name}{ending}" for name in (host, TWINS[host]) if name)
