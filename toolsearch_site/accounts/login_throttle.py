"""Login throttle: limits password attempts per account and address. Counters are in the database, shared by
all nodes.

An attempt counts for the user name at its address, for the address, and for the user name from anywhere. A
browser in which the user has signed in before has a counter of its own, so that lock-out cannot be used
against a known user.
"""

import ipaddress
import math
import secrets
import unicodedata
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from toolsearch_site.models import SignInCount

WINDOW = timedelta(minutes=15)
PER_NAME_AND_ADDRESS, PER_ADDRESS, PER_NAME, PER_KNOWN_BROWSER = 5, 50, 25, 10
KNOWN_COOKIE = "known"
KNOWN_FOR = timedelta(days=365)
_SALT = "toolsearch.sign-in"


@dataclass(frozen=True, slots=True)
class AttemptCounter:
    key: str
    limit: int


def counters_of(request: HttpRequest, username: str) -> list[AttemptCounter]:
    """The counters of an attempt, the narrowest first. They hold digests: some people type their password as
    the name.
    """
    name, address = _digest("name", _fold(username)), address_of(request)
    if browser := _known_browser(request, name):
        return [AttemptCounter(_digest("browser", browser), PER_KNOWN_BROWSER)]
    return [
        AttemptCounter(_digest("both", name, address), PER_NAME_AND_ADDRESS),
        AttemptCounter(_digest("address", address), PER_ADDRESS),
        AttemptCounter(name, PER_NAME),
    ]


def count_attempt(counts: list[AttemptCounter]) -> int:
    """Count the attempt before the password is checked, so that parallel attempts gain nothing. Returns the
    seconds to wait, or 0.
    """
    now = timezone.now()
    SignInCount.objects.filter(ends_at__lte=now).delete()
    for count in counts:
        attempts, ends_at = _add_one(count.key, now)
        if attempts > count.limit:
            return math.ceil((ends_at - now).total_seconds())
    return 0


def clear_attempts(counts: list[AttemptCounter]) -> None:
    """Undo the count of an attempt that succeeded, and clear earlier failures of the same user at the same
    address.
    """
    SignInCount.objects.filter(key=counts[0].key).delete()
    wider = [count.key for count in counts[1:]]
    SignInCount.objects.filter(key__in=wider, attempts__gt=0).update(attempts=F("attempts") - 1)


def remember_browser(response: HttpResponse, username: str) -> None:
    known = {"name": _digest("name", _fold(username)), "browser": secrets.token_urlsafe(9)}
    response.set_cookie(
        KNOWN_COOKIE,
        signing.dumps(known, salt=_SALT),
        max_age=KNOWN_FOR,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def address_of(request: HttpRequest) -> str:
    """The client's address: behind our proxy, the last entry of the header that the proxy appends to.

    Of an IPv6 address the /64 network counts, because one customer has all of it.
    """
    address = str(request.META.get("REMOTE_ADDR", ""))
    if settings.BEHIND_TLS:
        address = str(request.META.get("HTTP_X_FORWARDED_FOR", "")).rpartition(",")[2].strip() or address
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))


def _known_browser(request: HttpRequest, name: str) -> str:
    """The id in the browser's signed cookie, if this user has signed in with that browser before."""
    try:
        known = signing.loads(request.COOKIES.get(KNOWN_COOKIE, ""), salt=_SALT, max_age=KNOWN_FOR)
    except signing.BadSignature:
        return ""
    return str(known["browser"]) if constant_time_compare(known["name"], name) else ""


@transaction.atomic
def _add_one(key: str, now: datetime) -> tuple[int, datetime]:
    SignInCount.objects.get_or_create(key=key, defaults={"ends_at": now + WINDOW})
    SignInCount.objects.filter(key=key).update(attempts=F("attempts") + 1)
    # A success elsewhere may have taken the row away meanwhile; then this attempt is the first again.
    counted = SignInCount.objects.filter(key=key).values_list("attempts", "ends_at").first()
    return counted or (1, now + WINDOW)


def _fold(username: str) -> str:
    return unicodedata.normalize("NFKC", username).casefold()


def _digest(*parts: str) -> str:
    return salted_hmac(_SALT, "\0".join(parts), algorithm="sha256").hexdigest()
