"""The polls as plain views, because they are most of the requests.

A poll without news costs one read of the database and no work per tool. A new list is assembled from shared
pieces, and compressed where the caller accepts it.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from catalog.access import key_uses, rates
from catalog.access.callers import NotAuthenticated, read_bearer
from catalog.access.keys import is_own_key
from catalog.domain import keys
from catalog.domain.errors import InvalidInput, NotFound, ToolSearchError
from sessions.domain.loaded import LoadedTools
from sessions.models import AgentSession
from sessions.offers import known_models, offer_cache, polls, tool_lists
from sessions.offers.plain_sessions import OwnSession, read_plain
from sessions.offers.polls import Poll
from sessions.offers.rendering import pieces
from sessions.offers.rendering.formats import Discovered, Format, Hosted, ListForm, resolve_auto
from sessions.offers.rendering.pieces import Piece
from sessions.offers.states import read_together, resolve_tools
from sessions.offers.versions import Versions
from sessions.services import write_behind

WORTH_COMPRESSING_BYTES = 1024

Choice = TypeVar("Choice", bound=StrEnum)
Read = TypeVar("Read", Poll, OwnSession)
Find = Callable[[str], Poll | None]
# The key in the WSGI environ under which a view leaves the basis of its 304 for `not_modified.py`.
NOT_MODIFIED_BASIS = "toolsearch.not_modified"
_CACHING = {"Cache-Control": "private, no-cache", "Vary": "Accept-Encoding, Authorization"}


class NotModifiedBasis(NamedTuple):
    """The state that a 304 was based on, and how to read it again. `digest` is that of the offer of the
    session's policy; `window` is the model's context window, where the policy depends on it.
    """

    poll: Poll
    find: Find
    session_id: uuid.UUID | None = None
    digest: str = ""
    window: int | None = None
    reads_window: bool = False


def poll_session(request: HttpRequest, session_id: uuid.UUID) -> HttpResponse:
    def find(prefix: str) -> Poll | None:
        return polls.find_session_poll(prefix, session_id, now=timezone.now())

    poll = admit(read_bearer(request), find)
    if poll.policy_id is None:
        raise NotFound("There is no such session.")
    key_uses.enqueue(poll.key_id, request.META)
    write_behind.enqueue_seen(session_id)
    form = _read_form(request, poll)
    offer = offer_cache.offer_of_policy(poll.policy_id, poll.versions)
    reads_window = offer_cache.reads_window(offer.policy)
    window = known_models.find_window(poll.model) if reads_window else None
    ending = f"-{window}" if window else ""
    tag = f'W/"{offer.digest}-{poll.session_version}-{form.key}{ending}"'
    if _has(request, tag):
        basis = NotModifiedBasis(poll, find, session_id, offer.digest, window, reads_window)
        return _not_modified(request, tag, basis)
    return _send(request, tag, _render_session(session_id, poll.versions, form))


def poll_policy(request: HttpRequest, slug: str) -> HttpResponse:
    wanted = "" if "\0" in slug else slug  # which PostgreSQL would not even look for

    def find(prefix: str) -> Poll | None:
        return polls.find_policy_poll(prefix, wanted, now=timezone.now())

    poll = admit(read_bearer(request), find)
    if poll.policy_id is None:
        raise NotFound(f"There is no policy named {slug}.")
    key_uses.enqueue(poll.key_id, request.META)
    form = _read_form(request, poll)
    offer = offer_cache.offer_of_policy(poll.policy_id, poll.versions)
    tag = f'W/"{offer.digest}-{offer.version}-{form.key}"'
    if _has(request, tag):
        return _not_modified(request, tag, NotModifiedBasis(poll, find))
    resolved = tool_lists.ResolvedTools(offer)
    return _send(
        request, tag, tool_lists.render_tool_list(resolved, form, session=None, version=offer.version)
    )


def is_still_valid(basis: NotModifiedBasis, *, key_text: str, environ: Mapping[str, Any]) -> bool:
    """Whether the key is still valid and the versions are those of before. Records the key's use, as the view
    does.
    """
    try:
        poll = _recognise(key_text, basis.find)  # what is kept has no limit to count for
        if poll != basis.poll and not _lists_the_same(poll, basis):
            return False
        if basis.reads_window and known_models.find_window(poll.model) != basis.window:
            return False
    except ToolSearchError:  # the view reports it
        return False
    key_uses.enqueue(poll.key_id, environ)
    if basis.session_id is not None:
        write_behind.enqueue_seen(basis.session_id)
    return True


def _lists_the_same(poll: Poll, basis: NotModifiedBasis) -> bool:
    """Whether an edit raised the versions without changing the list, as most edits do."""
    if poll.policy_id is None or poll._replace(versions=basis.poll.versions) != basis.poll:
        return False
    digest = basis.digest
    return bool(digest) and offer_cache.offer_of_policy(poll.policy_id, poll.versions).digest == digest


def admit(text: str, find: Callable[[str], Read | None]) -> Read:
    """Check the key, and count the request."""
    poll = _recognise(text, find)
    rates.count_request(key_id=poll.key_id, limit_per_minute=poll.rate_limit_per_minute)
    return poll


def _recognise(text: str, find: Callable[[str], Read | None]) -> Read:
    """The key is checked against what the same read has brought."""
    prefix = keys.read_prefix(text)
    poll = find(prefix) if prefix is not None else None
    if poll is None or not is_own_key(text, key_id=poll.key_id, digest=poll.digest):
        raise NotAuthenticated
    return poll


def _read_form(request: HttpRequest, poll: Poll) -> ListForm:
    if not request.META.get("QUERY_STRING"):
        return tool_lists.MCP
    asked = ListForm(
        _read_choice(request, "format", Format, Format.MCP),
        _read_choice(request, "hosted", Hosted, Hosted.NO),
        _read_choice(request, "discovered", Discovered, Discovered.DEFAULT),
    )
    if asked.format is not Format.AUTO:
        return asked
    return resolve_auto(asked, known_models.find_ability(poll.model))


def _read_choice(request: HttpRequest, name: str, choices: type[Choice], default: Choice) -> Choice:
    given = request.GET.get(name)
    if given is None:
        return default
    try:
        return choices(given)
    except ValueError:
        raise InvalidInput.at(f"query.{name}", f"must be one of {', '.join(choices)}") from None


def _render_session(session_id: uuid.UUID, versions: Versions, form: ListForm) -> Sequence[Piece]:
    session, loaded = read_plain(session_id) or _read_whole(session_id)
    resolved = resolve_tools(session, loaded, versions)
    return tool_lists.render_tool_list(resolved, form, session=str(session_id), version=session.version)


def _read_whole(session_id: uuid.UUID) -> tuple[AgentSession, LoadedTools]:
    session = AgentSession.objects.filter(pk=session_id).first()
    if session is None:  # deleted since the key was checked
        raise NotFound("There is no such session.")
    return read_together(session)


def _has(request: HttpRequest, tag: str) -> bool:
    known = request.META.get("HTTP_IF_NONE_MATCH", "")
    return bool(known) and (known == tag or known.strip() == "*" or _opaque(tag) in _split_tags(known))


def _split_tags(known: str) -> list[str]:
    return [_opaque(one.strip()) for one in known.split(",")]


def _opaque(tag: str) -> str:
    """The tag without `W/`: a proxy may have weakened it."""
    return tag.removeprefix("W/")


def _not_modified(request: HttpRequest, tag: str, basis: NotModifiedBasis) -> HttpResponse:
    """304, with its basis for `not_modified.py` where one read is enough: not for `auto`, which looks a model
    up, nor for keys with a rate limit.
    """
    is_auto = bool(request.META.get("QUERY_STRING")) and request.GET.get("format") == Format.AUTO
    if not is_auto and basis.poll.rate_limit_per_minute is None:
        request.META[NOT_MODIFIED_BASIS] = basis
    return HttpResponse(status=304, content_type="application/json", headers={"ETag": tag, **_CACHING})


def _send(request: HttpRequest, tag: str, answer: Sequence[Piece]) -> HttpResponse:
    headers = {"ETag": tag, **_CACHING}
    is_long = sum(len(piece.content) for piece in answer) >= WORTH_COMPRESSING_BYTES
    if is_long and "gzip" in request.META.get("HTTP_ACCEPT_ENCODING", ""):
        headers["Content-Encoding"] = "gzip"
        return HttpResponse(pieces.gzip(answer), content_type="application/json", headers=headers)
    return HttpResponse(pieces.join_pieces(answer), content_type="application/json", headers=headers)
