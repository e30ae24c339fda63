"""Binds stored secrets to their destination, so that a changed address or command does not get them.

The destination of an address is its scheme, host and port, for editors also its path; that of a command is
the command with its arguments and its folder.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from catalog.domain.choices import Transport
from catalog.domain.dialects.config import ServerEntry
from catalog.domain.dialects.secrets import hide_secrets
from catalog.domain.errors import FieldProblem, InvalidInput
from catalog.domain.problems import join_place
from catalog.domain.references import names_in, names_of, texts_of

_DEFAULT_PORTS = {"http": 80, "https": 443}
_AGAIN = "must be given again: the server's stored secrets belong to the {} that it had"

Destination = tuple[object, ...]


def keep_secrets(
    given: ServerEntry, stored: ServerEntry, *, left_out: Collection[str] = (), with_path: bool
) -> ServerEntry:
    """The entry with stored values in place of masked ones.

    `left_out` names fields that were not given and are in `given` as they are shown; `with_path` makes the
    path part of an address. Raises InvalidInput that names every secret that has to be given again.
    """
    hidden = hide_secrets(stored)
    if not is_same_destination(given, stored, with_path=with_path):
        _refuse_kept(given, stored, hidden, left_out)
        return given
    kept = replace(
        given,
        args=stored.args if given.args == hidden.args else given.args,
        url=stored.url if given.url == hidden.url else given.url,
        env=_keep_values(given.env, stored.env, hidden.env),
        headers=_keep_values(given.headers, stored.headers, hidden.headers),
    )
    if names_in([kept.url]) & _masks(stored, hidden):
        raise InvalidInput.at(
            _place(given, "url"), "holds a value as it is shown in a secret's place: give the value itself"
        )
    return kept


def is_same_destination(given: ServerEntry, stored: ServerEntry, *, with_path: bool) -> bool:
    hidden = hide_secrets(stored)
    ours = _destination(given, with_path)
    return ours in (_destination(stored, with_path), _destination(hidden, with_path))


def _destination(entry: ServerEntry, with_path: bool) -> Destination:
    if entry.transport is Transport.STDIO:
        return entry.command, entry.args, entry.cwd
    try:
        parts = urlsplit(entry.url)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
        place: Destination = (parts.scheme, parts.hostname, port)
    except ValueError:  # a reference in place of the port, or a host that is none
        parts = urlsplit(entry.url.replace("[", "(").replace("]", ")"))
        place = (parts.scheme, parts.netloc.rpartition("@")[2])
    is_whole = with_path or not parts.hostname  # `${BASE}/mcp` has its host in what reads as a path
    return (*place, parts.path) if is_whole else place


def _refuse_kept(
    given: ServerEntry, stored: ServerEntry, hidden: ServerEntry, left_out: Collection[str]
) -> None:
    again = _AGAIN.format("command" if stored.transport is Transport.STDIO else "address")
    places = dict.fromkeys((*_masked_places(given, stored, hidden), *_left_out_places(given, left_out)))
    if places:
        raise InvalidInput(FieldProblem(_place(given, place), again) for place in places)


def _masked_places(given: ServerEntry, stored: ServerEntry, hidden: ServerEntry) -> Iterator[str]:
    masks = _masks(stored, hidden)
    return (place for place, text in texts_of(given) if names_in([text]) & masks)


def _left_out_places(given: ServerEntry, left_out: Collection[str]) -> Iterator[str]:
    """Every variable and header; of the rest, what contains a reference."""
    for place, text in texts_of(given):
        field = place.partition(".")[0].partition("[")[0]
        is_secret = field in {"env", "headers"} or names_in([text])
        if field in left_out and is_secret:
            yield place


def _masks(stored: ServerEntry, hidden: ServerEntry) -> frozenset[str]:
    """Reference names that stand for masked secrets, and for no variable."""
    return names_of(hidden) - names_of(stored)


def _keep_values(
    given: Mapping[str, str], stored: Mapping[str, str], hidden: Mapping[str, str]
) -> dict[str, str]:
    return {name: stored[name] if value == hidden.get(name) else value for name, value in given.items()}


def _place(entry: ServerEntry, place: str) -> str:
    return f"{join_place('mcpServers', entry.name)}.{place}"
