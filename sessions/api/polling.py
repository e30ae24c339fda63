"""The polls: plain views, because they are most of what agents ask all day.

A poll that finds nothing new costs one read of the database and no work per tool; only a new list is read,
assembled from shared pieces, and compressed where the caller can take it.
"""

import uuid
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from catalog.callers import NotAuthenticated, read_bearer
from catalog.domain.errors import InvalidInput, NotFound, ToolSearchError
from sessions.domain import keys, pieces
from sessions.domain.formats import Discovered, Format, Hosted, ListForm, resolve_auto
from sessions.domain.loaded import LoadedTools
from sessions.domain.pieces import Piece
from sessions.models import AgentSession
from sessions.reading import models_known, offers, polls, tool_lists
from sessions.reading.plain_sessions import read_plain
from sessions.reading.polls import Poll
from sessions.reading.states import read_together, stand
from sessions.reading.versions import Versions
from sessions.services import rates, records
from sessions.services.keys import is_own_key

WORTH_COMPRESSING_BYTES = 1024

Choice = TypeVar("Choice", bound=StrEnum)
Find = Callable[[str], Poll | None]
# Where a view leaves word, beside the request's headers, that its "not modified" may be given again.
UNCHANGED = "toolsearch.unchanged"
_CACHING = {"Cache-Control": "private, no-cache", "Vary": "Accept-Encoding, Authorization"}


class Unchanged(NamedTuple):
    """What a "not modified" came from, and how to read that again. `digest` is that of a session's policy's
    offer; `window` is its model's context window, where the policy reads windows.
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

    poll = _admit(read_bearer(request), find)
    if poll.policy_id is None:
        raise NotFound("There is no such session.")
    records.note_use(key_id=poll.key_id, session_id=session_id)
    form = _read_form(request, poll)
    offer = offers.offer_of_policy(poll.policy_id, poll.versions)
    reads_window = offers.reads_window(offer.policy)
    window = models_known.find_window(poll.model) if reads_window else None
    ending = f"-{window}" if window else ""
    tag = f'W/"{offer.digest}-{poll.session_version}-{form.key}{ending}"'
    if _has(request, tag):
        unchanged = Unchanged(poll, find, session_id, offer.digest, window, reads_window)
        return _not_modified(request, tag, unchanged)
    return _send(request, tag, _render_session(session_id, poll.versions, form))


def poll_policy(request: HttpRequest, slug: str) -> HttpResponse:
    wanted = "" if "\0" in slug else slug  # which PostgreSQL would not even look for

    def find(prefix: str) -> Poll | None:
        return polls.find_policy_poll(prefix, wanted, now=timezone.now())

    poll = _admit(read_bearer(request), find)
    if poll.policy_id is None:
        raise NotFound(f"There is no policy named {slug}.")
    records.note_use(key_id=poll.key_id)
    form = _read_form(request, poll)
    offer = offers.offer_of_policy(poll.policy_id, poll.versions)
    tag = f'W/"{offer.digest}-{offer.version}-{form.key}"'
    if _has(request, tag):
        return _not_modified(request, tag, Unchanged(poll, find))
    standing = tool_lists.Standing(offer)
    return _send(request, tag, tool_lists.render(standing, form, session=None, version=offer.version))


def is_still(unchanged: Unchanged, *, key_text: str) -> bool:
    """Whether the key is in force and reads what it read before. Then, as in a view, its use is noted."""
    try:
        poll = _recognise(key_text, unchanged.find)  # what is kept has no limit to count for
        if poll != unchanged.poll and not _lists_the_same(poll, unchanged):
            return False
        if unchanged.reads_window and models_known.find_window(poll.model) != unchanged.window:
            return False
    except ToolSearchError:  # for the view to tell
        return False
    records.note_use(key_id=poll.key_id, session_id=unchanged.session_id)
    return True


def _lists_the_same(poll: Poll, unchanged: Unchanged) -> bool:
    """Whether an edit moved the versions on and nothing that is sent: most edits do."""
    if poll.policy_id is None or poll._replace(versions=unchanged.poll.versions) != unchanged.poll:
        return False
    digest = unchanged.digest
    return bool(digest) and offers.offer_of_policy(poll.policy_id, poll.versions).digest == digest


def _admit(text: str, find: Find) -> Poll:
    """Check the key, and count the request."""
    poll = _recognise(text, find)
    rates.count_request(key_id=poll.key_id, limit_per_minute=poll.rate_limit_per_minute)
    return poll


def _recognise(text: str, find: Find) -> Poll:
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
    return resolve_auto(asked, models_known.find_ability(poll.model))


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
    standing = stand(session, loaded, versions)
    return tool_lists.render(standing, form, session=str(session_id), version=session.version)


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
    """Weak or not makes no difference here: a proxy between may have changed it."""
    return tag.removeprefix("W/")


def _not_modified(request: HttpRequest, tag: str, unchanged: Unchanged) -> HttpResponse:
    """Left for the next poll where one read tells everything: `auto` looks a model up, a limit counts."""
    is_auto = bool(request.META.get("QUERY_STRING")) and request.GET.get("format") == Format.AUTO
    if not is_auto and unchanged.poll.rate_limit_per_minute is None:
        request.META[UNCHANGED] = unchanged
    return HttpResponse(status=304, content_type="application/json", headers={"ETag": tag, **_CACHING})


def _send(request: HttpRequest, tag: str, answer: Sequence[Piece]) -> HttpResponse:
    headers = {"ETag": tag, **_CACHING}
    is_long = sum(len(piece.content) for piece in answer) >= WORTH_COMPRESSING_BYTES
    if is_long and "gzip" in request.META.get("HTTP_ACCEPT_ENCODING", ""):
        headers["Content-Encoding"] = "gzip"
        return HttpResponse(pieces.gzip(answer), content_type="application/json", headers=headers)
    return HttpResponse(pieces.join(answer), content_type="application/json", headers=headers)
