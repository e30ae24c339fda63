"""The templates' own tags: text from outside, times, shares."""

from datetime import timedelta

import pytest
from django.utils import timezone
from django.utils.safestring import mark_safe

from catalog.domain.limits import UNSEEN_EXPLAINED_CHARS
from toolsearch_site.templatetags import console


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain é 漢字 🎉", "plain é 漢字 🎉"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("<b>&", "&lt;b&gt;&amp;"),
    ],
)
def test_ordinary_text_is_only_escaped(text: str, html: str) -> None:
    assert console.visible(text) == html


@pytest.mark.parametrize(
    ("character", "code"),
    [
        ("\u200b", "200b"),
        ("\u202e", "202e"),
        ("\U000e0041", "e0041"),
        ("\x1b", "1b"),
        ("\r", "d"),
        ("\u00a0", "a0"),
        ("\u3164", "3164"),
        ("\ufe01", "fe01"),
        ("\ud800", "d800"),
        ("\ue000", "e000"),
    ],
)
def test_unseen_character_is_written_as_its_code(character: str, code: str) -> None:
    html = console.visible(f"<a{character}b>")
    assert f"\\u{{{code}}}</span>b&gt;" in html
    assert html.startswith("&lt;a<span")
    assert character not in html
    html.encode()


def test_text_marked_safe_is_not_believed() -> None:
    assert console.visible(mark_safe("<b>")) == "&lt;b&gt;"


@pytest.mark.parametrize(
    ("past", "words"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(minutes=5), "5\xa0minutes ago"),
        (timedelta(days=3, hours=5), "3\xa0days ago"),
        (-timedelta(seconds=30), "in a moment"),
        (-timedelta(hours=2, seconds=5), "in 2\xa0hours"),
    ],
)
def test_time_is_told_from_now_and_exactly_on_hover(past: timedelta, words: str) -> None:
    moment = timezone.now() - past
    html = console.ago(moment)
    assert f">{words}</time>" in html
    assert f'title="{moment:%Y-%m-%d %H:%M:%S} UTC"' in html


def test_no_time_is_never() -> None:
    assert "never" in console.ago(None)


def test_what_is_late_is_due_now() -> None:
    now = timezone.now()
    assert console.due(now - timedelta(hours=1)) == "now"
    assert "in 59" in console.due(now + timedelta(hours=1))


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0%"), (0.0001, "<0.1%"), (0.0456, "4.6%"), (0.1, "10%"), (0.284, "28%"), (2.5, "250%")],
)
def test_share_has_a_digit_only_below_ten_percent(share: float, words: str) -> None:
    assert console.percent(share) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(3600, "hour"), (7200, "2 hours"), (90, "90 seconds"), (60, "minute"), (86400, "day")],
)
def test_span_in_its_largest_unit(seconds: int, words: str) -> None:
    assert console.in_words(seconds) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "unset"), (True, "yes"), (False, "no"), (["a", "b"], "a, b"), ([], "none"), ("x", "x"), (5, "5")],
)
def test_setting_in_words(value: object, words: str) -> None:
    assert console.plain_value(value) == words


def test_a_text_of_nothing_but_unseen_characters_stays_small_on_the_page() -> None:
    """The first are explained; the others are told by their code, so that none is hidden."""
    html = console.visible("a<\u200b" * 100_000)
    assert html.count("<span") == UNSEEN_EXPLAINED_CHARS
    assert html.count("\\u{200b}") == 100_000
    assert html.count("&lt;") == 100_000
    assert len(html) < 2_000_000
