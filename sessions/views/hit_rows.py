"""Rows of hits for the console: highlighted words and the score by term and field."""

from collections.abc import Collection
from dataclasses import dataclass

from django.urls import reverse

from catalog.domain.choices import Ranker
from catalog.domain.query import Query, Required
from catalog.domain.sizes import tokens_of
from catalog.search.highlights import Span, TextSpan, cut_at, find_inside, find_words
from catalog.search.request import MatchedBy
from catalog.selectors.hits import ExplainedScore, explain_score, words_of
from sessions.offers.offer_search import Found
from sessions.offers.rendering.wire import ToolText
from sessions.services.search_trials import Trial

SHOWN_CHARS = 240
LEAD_CHARS = 60
ELLIPSIS = TextSpan("…")


@dataclass(frozen=True, slots=True)
class HitRow:
    """`is_new` when the search would load the tool. Neither new nor loaded are tools past the policy's limit
    of loaded tools, and all where nothing is deferred. `is_by_meaning` where no word of the query matched.
    """

    tool: ToolText
    name: list[TextSpan]
    server: list[TextSpan]
    description: list[TextSpan]
    explained: ExplainedScore
    is_new: bool
    is_in_force: bool
    is_expected: bool
    is_by_meaning: bool

    @property
    def tokens(self) -> int:
        return tokens_of(self.tool.chars)

    @property
    def url(self) -> str:
        """Empty for a session's own tool."""
        return reverse("tool_detail", args=[self.tool.name]) if self.tool.id > 0 else ""


def make_rows(trial: Trial, ranker: Ranker, expected: Collection[str]) -> list[HitRow]:
    found = trial.finding.found
    best = max((one.hit.score for one in found), default=0.0)
    marker = _Marker(trial.query, ranker)
    in_force = {match.found.tool.name for match in trial.result.matches if match.is_already_loaded}
    return [
        HitRow(
            tool=one.tool.text,
            name=cut_at(one.tool.text.tool, marker.find(one, one.tool.text.tool)),
            server=cut_at(one.tool.text.server, marker.find(one, one.tool.text.server)),
            description=_cut_out(one.tool.text.description, marker, one),
            explained=explain_score(one.hit, best=best),
            is_new=one.tool.name in trial.result.loaded,
            is_in_force=one.tool.name in in_force,
            is_expected=one.tool.name in expected,
            is_by_meaning=one.hit.by is MatchedBy.MEANING,
        )
        for one in found
    ]


@dataclass(frozen=True, slots=True)
class _Marker:
    query: Query
    ranker: Ranker

    def find(self, found: Found, text: str) -> list[Span]:
        """`bm25f` finds words; the other rankers find whatever a text contains."""
        typed = words_of(found.hit)
        if isinstance(self.query, Required):
            typed += self.query.required
        if self.query.form == "pattern":
            return []
        return find_words(text, typed) if self.ranker is Ranker.BM25F else find_inside(text, typed)


def _cut_out(text: str, marker: _Marker, found: Found) -> list[TextSpan]:
    """The beginning of a long text, or the part around the first highlighted word."""
    if len(text) <= SHOWN_CHARS:
        return cut_at(text, marker.find(found, text))
    first = next(iter(marker.find(found, text)), (0, 0))
    start = 0 if first[1] <= SHOWN_CHARS else first[0] - LEAD_CHARS
    part = text[start : start + SHOWN_CHARS]
    before = [ELLIPSIS] if start > 0 else []
    after = [ELLIPSIS] if start + len(part) < len(text) else []
    return [*before, *cut_at(part, marker.find(found, part)), *after]
