"""Which hosts a request may name, so that no web page reaches the gateway through a name of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.http.request import split_domain_port, validate_host


@dataclass(frozen=True, slots=True)
class HostRefusal:
    """`is_host` is False where the page that asks is a foreign one."""

    title: str
    detail: str
    is_host: bool


FOREIGN_HOST = HostRefusal("Misdirected request", "This host is not in ALLOWED_HOSTS.", is_host=True)
FOREIGN_ORIGIN = HostRefusal("Forbidden", "Pages of other sites may not call the gateway.", is_host=False)


class AllowedHosts:
    """By the rules of `ALLOWED_HOSTS`, whatever the port."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._allowed = list(allowed)

    def find_refusal(self, host: str, origin: str | None) -> HostRefusal | None:
        """Programs send no origin."""
        if not self._allows(split_domain_port(host)[0]):
            return FOREIGN_HOST
        if origin is None or self._allows(_host_of(origin)):
            return None
        return FOREIGN_ORIGIN

    def _allows(self, domain: str) -> bool:
        return bool(domain) and validate_host(domain, self._allowed)


def _host_of(origin: str) -> str:
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        return ""
    return f"[{host}]" if ":" in host else host
