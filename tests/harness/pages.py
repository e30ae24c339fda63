"""Helpers for page tests: signed-in clients, visible text, and the rules that every page must keep."""

import re
from html.parser import HTMLParser
from typing import Any

from django.test import Client

from catalog.access.roles import Role
from tests.harness.rows import make_user

HTMX = {"HX-Request": "true"}


def signed_in(role: Role) -> Client:
    client = Client()
    client.force_login(make_user(role))
    return client


def text_of(response: Any) -> str:
    return str(response.content.decode())


def visible_text(response: Any) -> str:
    """What a reader reads: no tags, no runs of blanks."""
    without_tags = re.sub(r"<[^>]+>", " ", text_of(response))
    return re.sub(r"\s+", " ", without_tags)


class RuleChecker(HTMLParser):
    """Finds what the Content-Security-Policy would block, and whatever is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.broken += [f"<{tag} {name}>" for name in attributes if name == "style" or name.startswith("on")]
        self.broken += [f"<{tag} {name}>" for name in attributes if name.startswith("hx-on")]
        if tag == "style" or (tag == "script" and not self._is_allowed_script(attributes)):
            self.broken.append(f"<{tag}>")
        for name in ("src", "href", "action", "hx-get", "hx-post"):
            if re.match(r"(?i)(\w+:)?//|javascript:", attributes.get(name) or ""):
                self.broken.append(f'<{tag} {name}="{attributes[name]}">')
        if identity := attributes.get("id"):
            self.ids.append(identity)

    @staticmethod
    def _is_allowed_script(attributes: dict[str, str | None]) -> bool:
        return bool(attributes.get("src")) or attributes.get("type") == "application/json"


def broken_rules(response: Any) -> list[str]:
    """Empty for a page that a strict browser shows as it is meant."""
    checker = RuleChecker()
    checker.feed(text_of(response))
    repeated = {identity for identity in checker.ids if checker.ids.count(identity) > 1}
    policy = response.headers.get("Content-Security-Policy", "")
    problems = checker.broken + [f"id {identity} repeats" for identity in sorted(repeated)]
    if "default-src 'self'" not in policy or "unsafe" in policy:
        problems.append(f"Content-Security-Policy: {policy}")
    return problems
