"""The user's own latest queries, stored with the sign-in."""

from django.http import HttpRequest

KEY = "console_queries"
KEPT = 8


def remember(request: HttpRequest, query: str) -> None:
    """A query that extends or shortens the last one replaces it, since it was typed letter by letter."""
    kept = recent_queries(request)
    is_typing = bool(kept) and (query.startswith(kept[0]) or kept[0].startswith(query))
    others = kept[1:] if is_typing else kept
    now = [query, *(other for other in others if other != query)][:KEPT]
    if now != kept:
        request.session[KEY] = now


def recent_queries(request: HttpRequest) -> list[str]:
    """The latest first."""
    return list(request.session.get(KEY, []))
