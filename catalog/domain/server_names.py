"""Names of servers: which are given, and how each stands in an address. A name may hold a `/`."""

import re

MAX_CHARS = 100
# What stands below a server in addresses of the console and of REST, now or soon.
BELOW_A_SERVER = (
    *("refresh", "test", "loading", "enabled", "interval", "edit", "delete"),
    *("connect", "disconnect", "secrets"),
)
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_NUMBER = re.compile(r"~([0-9]{1,18})")


def why_refused(name: str) -> str | None:
    """Why no new server can have the name; None where it can."""
    if not 1 <= len(name) <= MAX_CHARS or not name.strip() or _CONTROL_CHARACTER.search(name):
        return f"must be named with 1 to {MAX_CHARS} characters, not all blank, and no control characters"
    segments = name.split("/")
    if not {"", ".", ".."}.isdisjoint(segments):
        return "must not be named with an empty part, . or .. between slashes, which browsers resolve"
    if len(segments) > 1 and segments[-1] in BELOW_A_SERVER:
        return f"must not be named to end in /{segments[-1]}, which stands below a server in addresses"
    if read_number(name) is not None:
        return "must not be named ~ and a number, which stands for a server in addresses"
    return None


def write_address(name: str, number: int) -> str:
    """What stands for a server in an address, not encoded yet: its name, or `~` and its number.

    The number is for names that were given before they were refused.
    """
    return name if why_refused(name) is None else f"~{number}"


def read_number(address: str) -> int | None:
    """The number of a server that an address gives in place of a name."""
    number = _NUMBER.fullmatch(address)
    return int(number[1]) if number else None
