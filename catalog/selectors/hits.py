"""What a search found, as a page explains it: each hit with its score taken apart by term and field."""

from dataclasses import dataclass

from catalog.domain.sizes import tokens_of
from catalog.models import Tool
from catalog.search.request import Hit, SearchOutcome
from catalog.selectors.tools import TABLE_FIELDS

READINGS = {
    "keywords": "ranked keywords",
    "required": "required words, the rest ranked",
    "select": "tools by name",
    "pattern": "a regular expression",
    "listing": "browse everything",
}


@dataclass(frozen=True, slots=True)
class TermScore:
    """One term's points: `cells` in the order of the hit's `fields`, unset where the field gave none."""

    term: str
    cells: list[float | None]
    total: float


@dataclass(frozen=True, slots=True)
class ExplainedHit:
    tool: Tool
    score: float
    share_percent: float  # of the best score
    fields: list[str]
    terms: list[TermScore]


@dataclass(frozen=True, slots=True)
class ExplainedOutcome:
    outcome: SearchOutcome
    reading: str
    hits: list[ExplainedHit]
    tokens: int


def explain_outcome(outcome: SearchOutcome) -> ExplainedOutcome:
    """A hit whose tool went away since the index was built is left out."""
    ids = [hit.id for hit in outcome.hits]
    found = Tool.objects.filter(pk__in=ids).select_related("server").only(*TABLE_FIELDS)
    tools = {tool.pk: tool for tool in found}
    best = max((hit.score for hit in outcome.hits), default=0.0)
    explained = [_explain_hit(hit, tools[hit.id], best) for hit in outcome.hits if hit.id in tools]
    return ExplainedOutcome(
        outcome=outcome,
        reading=READINGS.get(outcome.form, outcome.form),
        hits=explained,
        tokens=tokens_of(sum(hit.tool.chars for hit in explained)),
    )


def _explain_hit(hit: Hit, tool: Tool, best: float) -> ExplainedHit:
    fields = list(dict.fromkeys(part.field for part in hit.parts))
    terms = list(dict.fromkeys(part.term for part in hit.parts))
    return ExplainedHit(
        tool=tool,
        score=hit.score,
        share_percent=round(hit.score / best * 100, 1) if best else 0.0,
        fields=fields,
        terms=[_term_score(hit, term, fields) for term in terms],
    )


def _term_score(hit: Hit, term: str, fields: list[str]) -> TermScore:
    points: dict[str, float] = {}
    for part in hit.parts:
        if part.term == term:
            points[part.field] = points.get(part.field, 0.0) + part.score
    return TermScore(term=term, cells=[points.get(field) for field in fields], total=sum(points.values()))
