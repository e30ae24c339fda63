"""Where MCP clients find the gateway, as pages say it."""

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest

PATH = "/mcp"


def gateway_address(request: HttpRequest) -> str:
    """The one that was set, else the host that the page was asked of, at the gateway's port."""
    if settings.GATEWAY_URL:
        return str(settings.GATEWAY_URL)
    host = urlsplit(f"//{request.get_host()}").hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return f"{request.scheme}://{shown}:{settings.GATEWAY_PORT}{PATH}"
