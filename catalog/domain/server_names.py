"""Names of servers: which are allowed, and how each is written in a URL. A name may contain a `/`."""

import re

MAX_CHARS = 100
# What stands below a server in addresses of the console and of REST, now or soon.
BELOW_A_SERVER = (
    *("refresh", "test", "loading", "enabled", "interval", "edit", "delete"),
    *("connect", "disconnect", "client", "secrets"),
)
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_NUMBER = re.compile(r"~([0-9]{1,18})")


def why_name_refused(name: str) -> str | None:
    """Why a new server cannot have the name; None where it can."""
    if not 1 <= len(name) <= MAX_CHARS or not name.strip() or _CONTROL_CHARACTER.search(name):
        return f"must be named with 1 to {MAX_CHARS} characters, not all blank, and no control characters"
    segments = name.split("/")
    if not {"", ".", ".."}.isdisjoint(segments):
        return "must not be named with an empty part, . or .. between slashes, which browsers resolve"
    if len(segments) > 1 and segments[-1] in BELOW_A_SERVER:
        return f"must not be named to end in /{segments[-1]}, which stands below a server in addresses"
    if read_server_number(name) is not None:
        return "must not be named ~ and a number, which stands for a server in addresses"
    return None


def write_address(name: str, number: int) -> str:
    """The server in a URL, before encoding: its name, or `~` and its id.

    The id is for names given before they were forbidden.
    """
    return name if why_name_refused(name) is None else f"~{number}"


def read_server_number(address: str) -> int | None:
    """The id of a server that a URL gives in place of a name."""
    number = _NUMBER.fullmatch(address)
    return int(number[1]) if number else None
