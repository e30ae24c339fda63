"""Addresses of servers' resources at the gateway: `toolsearch://<server>/<encoded address>`."""

from urllib.parse import quote, unquote

SCHEME = "toolsearch://"
_LEGAL = "%:/?#[]@!$&'()*+,;=-._~"


def write_address(server: str, uri: str) -> str:
    return f"{SCHEME}{quote(server, safe='')}/{quote(uri, safe='')}"


def write_template(server: str, template: str) -> str:
    """Of a template. Operators and names between braces stay; what is filled in needs no second encoding."""
    parts = template.replace("}", "{").split("{")
    written = "".join(
        quote(part, safe="") if place % 2 == 0 else f"{{{part}}}" for place, part in enumerate(parts)
    )
    return f"{SCHEME}{quote(server, safe='')}/{written}"


def read_address(address: str) -> tuple[str, str] | None:
    """The server and its own address; None for what is no address of a resource here."""
    if not address.startswith(SCHEME):
        return None
    server, slash, uri = address.removeprefix(SCHEME).partition("/")
    return (unquote(server), unquote(uri)) if slash and server and uri else None


def encode_odd_characters(uri: str) -> str:
    """What no address may hold, encoded: a client fills a template in with encoded values, which were decoded
    with the rest.
    """
    return quote(uri, safe=_LEGAL)


def fits_template(uri: str, template: str) -> bool:
    """Whether an address can be of this template, by what is before its first and after its last brace."""
    begin, has_begun, rest = template.partition("{")
    end = rest.rpartition("}")[2]
    return (
        bool(has_begun) and len(uri) > len(begin) + len(end) and uri.startswith(begin) and uri.endswith(end)
    )
