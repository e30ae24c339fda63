"""What the console's templates need beyond Django's own tags."""

import json
import math
import unicodedata
from collections.abc import Container
from datetime import datetime
from itertools import islice

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince

from catalog.domain.choices import Reason, ThresholdUnit
from catalog.domain.decide import Decided
from catalog.domain.limits import UNSEEN_EXPLAINED_CHARS
from catalog.domain.policy import Policy as DomainPolicy
from catalog.models import Policy, Tool
from catalog.selectors.policies import UNIT_WORDS, label_of
from catalog.selectors.reasons import REASON_WORDS
from catalog.services import edits
from sessions.reading import costs
from sessions.reading.costs import Cost

register = template.Library()

KEPT_CONTROLS = frozenset("\n\t")
# Printable by the book, yet nothing is drawn: fillers, the blank braille cell, the variation selectors.
BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE0F), *range(0xE0100, 0xE01F0))
}
ICON_SPRITE = "vendor/tabler-icons/sprite.svg"
A_MINUTE_SECONDS = 60


@register.filter
def loading_version(tool: Tool) -> str:
    """What a choice of the tool's loading is made from."""
    return edits.version_of({"loading": str(tool.loading)})


@register.simple_tag
def icon(name: str, extra_class: str = "") -> SafeString:
    """An icon of the vendored sprite; decoration only, so the text beside it must say the same."""
    classes = f"icon {extra_class}".strip()
    address = f"{static(ICON_SPRITE)}#{name}"
    return format_html('<svg class="{}" aria-hidden="true"><use href="{}"></use></svg>', classes, address)


@register.simple_tag
def policy_cost(policy: Policy) -> Cost:
    """What its agents pay: for pages of the catalog, which does not know what agents are sent."""
    return costs.cost_of_policy(policy)


@register.simple_tag
def proposed_cost(policy: DomainPolicy, made: Decided) -> Cost:
    """The same for a policy that is not saved, with the decisions it would make."""
    return costs.cost_of_proposal(policy, made)


@register.filter
def visible(text: object) -> SafeString:
    """Text from outside, escaped, with every character that would not be seen written as its code."""
    plain = str(text)
    # Nearly all text passes the first look, which a long list of names makes thousands of times.
    if (plain.isprintable() and BLANKS.isdisjoint(plain)) or not any(map(is_unseen, set(plain))):
        return escape(plain)
    # Each character that differs is named once, and what one text can make of the page has an end.
    unseen = {ord(character): character for character in set(plain) if is_unseen(character)}
    end = _end_of_explained(plain, unseen)
    explained = escape(plain[:end]).translate({code: _show(one) for code, one in unseen.items()})
    told = escape(plain[end:]).translate({code: f"\\u{{{code:x}}}" for code in unseen})
    return mark_safe(explained + told)  # noqa: S308 - both halves are escaped


@register.filter
def pretty_json(value: object) -> SafeString:
    return visible(json.dumps(value, ensure_ascii=False, indent=2))


@register.filter
def exact_json(value: object) -> SafeString:
    """To be copied and read by a program: what would not be seen is written as JSON escapes it."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return escape("".join(json.dumps(one)[1:-1] if is_unseen(one) else one for one in text))


@register.filter
def ago(moment: datetime | None) -> SafeString:
    """How long since or until a moment, with the exact time on hover."""
    if moment is None:
        return format_html('<span class="muted">{}</span>', "never")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(timespec="seconds"),
        f"{moment:%Y-%m-%d %H:%M:%S} UTC",
        _distance(moment),
    )


@register.filter
def due(moment: datetime) -> SafeString | str:
    """When something will happen; what is late happens as soon as it can."""
    return ago(moment) if moment > timezone.now() else "now"


@register.filter
def in_words(seconds: int) -> str:
    """A span in the largest unit that divides it."""
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % size == 0:
            count = seconds // size
            return unit if count == 1 else f"{count} {unit}s"
    return f"{seconds} seconds"


@register.filter
def percent(share: float) -> str:
    """A fraction of 1 in percent: whole from ten on, one digit below; what is not all of it is not 100%."""
    value = share * 100
    if 99.5 <= value < 100:
        return f"{math.floor(value * 10) / 10:.1f}%"
    if 0 < value < 0.05:
        return "<0.1%"
    return f"{value:.1f}%" if 0 < value < 10 else f"{value:.0f}%"


@register.filter
def locks(policy: Policy | None, tool: Tool) -> bool:
    """Whether the policy's quarantine holds the tool back."""
    return policy is not None and policy.holds_back(tool.approval)


@register.filter
def reason_words(reason: str) -> str:
    """A deciding rule's id in a reader's words."""
    return REASON_WORDS[Reason(reason)]


@register.filter
def unit_words(unit: str) -> str:
    """A threshold's unit in a reader's words."""
    return UNIT_WORDS[ThresholdUnit(unit)]


@register.filter
def field_label(name: str) -> str:
    """A policy's field as its page calls it."""
    return label_of(name)


@register.filter
def amount(number: float) -> str:
    """Grouped, with two digits after the point at most and none that say nothing."""
    return f"{round(number, 2):,.12g}"


@register.filter
def signed(number: int) -> str:
    """A difference, grouped, with its sign; none is a dash."""
    return f"{number:+,}".replace("-", "\N{MINUS SIGN}") if number else "–"


@register.filter
def points(number: float) -> str:
    """A difference of two percentages, with its sign."""
    return f"{number:+.1f} points".replace("-", "\N{MINUS SIGN}")


@register.filter
def plain_value(value: object) -> str:
    """A stored setting in a reader's words."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,.12g}"
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _end_of_explained(text: str, unseen: Container[int]) -> int:
    """The place from which on unseen characters are written as their code alone."""
    places = (place for place, character in enumerate(text) if ord(character) in unseen)
    return next(islice(places, UNSEEN_EXPLAINED_CHARS, None), len(text))


def _show(character: str) -> str:
    name = unicodedata.name(character, "control character")
    return format_html('<span class="unseen" title="{}">\\u{{{}}}</span>', name, f"{ord(character):x}")


def is_unseen(character: str) -> bool:
    if character in KEPT_CONTROLS:
        return False
    return not character.isprintable() or character in BLANKS


def _distance(moment: datetime) -> str:
    seconds = (timezone.now() - moment).total_seconds()
    if abs(seconds) < A_MINUTE_SECONDS:
        return "just now" if seconds >= 0 else "in a moment"
    if seconds > 0:
        return f"{timesince(moment, depth=1)} ago"
    return f"in {timesince(timezone.now(), moment, depth=1)}"
