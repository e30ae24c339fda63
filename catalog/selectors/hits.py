"""Explains hits for a page: each score by term and field."""

from dataclasses import dataclass

from catalog.search.fields import FIELD_NAMES
from catalog.search.request import Hit

READINGS = {
    "keywords": "ranked keywords",
    "required": "required words, the rest ranked",
    "select": "tools by name",
    "pattern": "a regular expression",
    "listing": "browse everything",
}


@dataclass(frozen=True, slots=True)
class TermScore:
    """One term's points: `cells` are in the order of the score's `fields`, None where the field gave none."""

    term: str
    cells: list[float | None]
    total: float


@dataclass(frozen=True, slots=True)
class ExplainedScore:
    score: float
    share_percent: float  # of the best score
    fields: list[str]
    terms: list[TermScore]


def explain_score(hit: Hit, *, best: float) -> ExplainedScore:
    fields = list(dict.fromkeys(part.field for part in hit.parts))
    terms = list(dict.fromkeys(part.term for part in hit.parts))
    return ExplainedScore(
        score=hit.score,
        share_percent=round(hit.score / best * 100, 1) if best else 0.0,
        fields=[field.replace("_", " ") for field in fields],
        terms=[_term_score(hit, term, fields) for term in terms],
    )


def words_of(hit: Hit) -> list[str]:
    """The words, as typed, that occur in one of the tool's texts."""
    return list(dict.fromkeys(part.term for part in hit.parts if part.field in FIELD_NAMES))


def _term_score(hit: Hit, term: str, fields: list[str]) -> TermScore:
    points: dict[str, float] = {}
    for part in hit.parts:
        if part.term == term:
            points[part.field] = points.get(part.field, 0.0) + part.score
    return TermScore(term=term, cells=[points.get(field) for field in fields], total=sum(points.values()))
