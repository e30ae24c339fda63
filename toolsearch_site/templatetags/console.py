"""Template tags and filters of the console."""

import json
import math
import unicodedata
from collections.abc import Container, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import islice

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince

from catalog.access.actors import hide_prefix
from catalog.console.spans import write_span
from catalog.domain.choices import Reason, ThresholdUnit
from catalog.domain.limits import UNSEEN_EXPLAINED_CHARS
from catalog.domain.policy import Policy as DomainPolicy
from catalog.domain.prices import ModelPrices, write_dollars
from catalog.models import Policy, Tool
from catalog.selectors.facts import read_policy
from catalog.selectors.policies import UNIT_WORDS, label_of
from catalog.selectors.policy_flips import PolicyFlips
from catalog.selectors.preview import Preview
from catalog.selectors.tool_decisions import REASON_WORDS
from catalog.services import edits
from catalog.views.curve_chart import CurveChart, draw_curve_chart
from catalog.views.word_diff import DiffSpan
from sessions.offers import costs
from sessions.offers.costs import Cost, CostChange

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
    """The version of the tool's settings that a choice of its loading is based on."""
    return edits.encode_version({"loading": str(tool.loading)})


@register.simple_tag
def icon(name: str, extra_class: str = "") -> SafeString:
    """An icon of the vendored sprite; decorative, so the text beside it must say the same."""
    classes = f"icon {extra_class}".strip()
    address = f"{static(ICON_SPRITE)}#{name}"
    return format_html('<svg class="{}" aria-hidden="true"><use href="{}"></use></svg>', classes, address)


@register.simple_tag
def policy_cost(policy: Policy) -> Cost:
    """The policy's cost for agents. A tag, because pages of the catalog must not import `sessions`."""
    return costs.cost_of_policy(policy)


@register.simple_tag
def proposed_change(policy: Policy, wanted: DomainPolicy, found: Preview) -> CostChange:
    """What the policy would cost if it were saved as wanted, beside what it costs now."""
    (then,) = costs.costs_of_proposals([(wanted, found.after.decisions)])
    return costs.explain_change(costs.cost_of_policy(policy), then, found.dry_run)


@register.simple_tag
def cost_changes(flips: Sequence[PolicyFlips]) -> list[tuple[PolicyFlips, CostChange]]:
    """What a change of tools or servers would do to the cost under each policy."""
    then = costs.costs_of_proposals((each.rules, each.after.decisions) for each in flips)
    return [
        (each, costs.explain_change(costs.cost_of_policy(each.policy), cost, each.dry_run))
        for each, cost in zip(flips, then, strict=True)
    ]


@register.simple_tag
def threshold_chart(policy: Policy, wanted: DomainPolicy, found: Preview, then: Cost) -> CurveChart:
    """What an agent would pay by threshold."""
    steps = costs.cost_curve(found.curve, wanted, made=found.after, cost=then)
    return draw_curve_chart(steps, wanted, read_policy(policy))


@register.filter
def by_whom(label: str, is_admin: bool) -> str:
    """Who made a change: how a key begins, which old records tell, is for admins."""
    return label if is_admin else hide_prefix(label)


@register.filter
def visible(text: object) -> SafeString:
    """Untrusted text, escaped, with invisible characters shown as their code points."""
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
def as_change(piece: DiffSpan) -> SafeString:
    """A piece of a text that changed, struck out where it is gone, marked where it is new."""
    tag = {"gone": "del", "new": "ins"}.get(piece.kind)
    return format_html("<{0}>{1}</{0}>", tag, visible(piece.text)) if tag else visible(piece.text)


@register.filter
def pretty_json(value: object) -> SafeString:
    return visible(json.dumps(value, ensure_ascii=False, indent=2))


@register.filter
def json_text(value: object) -> SafeString:
    """JSON as the text of an element, for scripts: htmx leaves out elements that are scripts themselves."""
    return escape(json.dumps(value))


@register.filter
def exact_json(value: object) -> SafeString:
    """Text for copying into a program: invisible characters as JSON escapes."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return escape("".join(json.dumps(one)[1:-1] if is_unseen(one) else one for one in text))


@register.filter
def ago(moment: datetime | None) -> SafeString:
    """Time since or until a moment, with the exact time as tooltip."""
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
    """When something will happen; "now" where it is late."""
    return ago(moment) if moment > timezone.now() else "now"


@register.filter
def sorts_down(direction: str, is_reversed: bool | str) -> bool:
    """Whether a column whose order is `direction` has its largest first now."""
    return (direction == "descending") is not bool(is_reversed)


@register.filter
def in_words(seconds: int) -> str:
    """A span in the largest unit that divides it, as in "every day"."""
    return write_span(seconds).removeprefix("1 ")


@register.filter
def percent(share: float) -> str:
    """A fraction as a percentage: whole from ten on, one digit below; less than all is never 100%."""
    value = share * 100
    if 99.5 <= value < 100:
        return f"{math.floor(value * 10) / 10:.1f}%"
    if 0 < value < 0.05:
        return "<0.1%"
    return f"{value:.1f}%" if 0 < value < 10 else f"{value:.0f}%"


@register.filter
def locks(policy: Policy | None, tool: Tool) -> bool:
    """Whether the policy's quarantine locks the tool."""
    return policy is not None and policy.holds_back(tool.approval)


@register.filter
def reason_words(reason: str) -> str:
    """The text for a rule's id."""
    return REASON_WORDS[Reason(reason)]


@register.filter
def unit_words(unit: str) -> str:
    """The text for a threshold's unit."""
    return UNIT_WORDS[ThresholdUnit(unit)]


@register.filter
def field_label(name: str) -> str:
    """The label of a policy's field."""
    return label_of(name)


@register.filter
def amount(number: float) -> str:
    """A number with thousands separators and at most two decimals."""
    return f"{round(number, 2):,.12g}"


@register.filter
def dollars(tokens: int, prices: ModelPrices) -> str:
    """What so many input tokens cost in 1,000 requests, none of them cached."""
    return write_dollars(prices.per_thousand_requests(tokens))


@register.filter
def cached_dollars(tokens: int, prices: ModelPrices) -> str:
    """The same where the provider's prompt cache has them; empty where that price is not known."""
    cost = prices.per_thousand_cached(tokens)
    return "" if cost is None else write_dollars(cost)


@register.filter
def price(amount: Decimal) -> str:
    """A price in dollars, with cents and as many more decimals as it has."""
    text = f"{amount:,.6f}".rstrip("0")
    whole, _, decimals = text.partition(".")
    return f"${whole}.{decimals:0<2}"


@register.filter
def signed(number: int) -> str:
    """A difference with thousands separators and its sign; zero is a dash."""
    return f"{number:+,}".replace("-", "\N{MINUS SIGN}") if number else "–"


@register.filter
def points(number: float) -> str:
    """A difference of two percentages, with its sign."""
    return f"{number:+.1f} points".replace("-", "\N{MINUS SIGN}")


@register.filter
def plain_value(value: object) -> str:
    """The text for a stored setting."""
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
    """The position after which invisible characters are shown without an explanation."""
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
