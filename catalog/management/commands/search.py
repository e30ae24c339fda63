"""`manage.py search QUERY`: searches as an agent does, from the shell."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.domain.choices import Ranker
from catalog.domain.errors import ToolSearchError
from catalog.domain.limits import RESULTS
from catalog.models import Policy, Tool
from catalog.search.request import SearchOutcome, are_by_meaning
from catalog.selectors import search

DESCRIPTION_CHARS = 100


class Command(BaseCommand):
    help = "Search the catalog, or what a policy shows of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("query")
        parser.add_argument("--policy", metavar="SLUG", help="search as its agents do, with its settings")
        parser.add_argument("--ranker", choices=[ranker.value for ranker in Ranker])
        parser.add_argument("--limit", type=int, metavar="N", help=f"1 to {RESULTS}, within the policy")
        parser.add_argument("--json", action="store_true")

    def handle(self, *, query: str, policy: str | None, ranker: str | None, **options: Any) -> None:
        try:
            outcome = _search(query, policy, ranker, options["limit"])
        except ToolSearchError as error:
            raise CommandError(str(error)) from None
        matches = list(_read_matches(outcome))
        if options["json"]:
            answer = {"query": query, **asdict(outcome), "matches": matches}
            del answer["hits"]
            self.stdout.write(json.dumps(answer, indent=2, ensure_ascii=False))
        else:
            self._report(outcome, matches)

    def _report(self, outcome: SearchOutcome, matches: list[dict[str, Any]]) -> None:
        for match in matches:
            text = " ".join(match["description"].split())[:DESCRIPTION_CHARS]
            self.stdout.write(f"{match['score']:8.3f}  {match['name']}  {match['by']:7}  {text}")
        if not matches:
            self.stdout.write(f"nothing found ({outcome.outcome})")
        elif are_by_meaning(outcome.hits):
            self.stdout.write("none of these has a word of the query: they are the nearest in meaning")
        if outcome.missing:
            self.stdout.write(f"no tool is named {', '.join(outcome.missing)}")
        if outcome.unmatched_terms:
            self.stdout.write(f"no tool has the words {', '.join(outcome.unmatched_terms)}")
        for suggestion in outcome.did_you_mean:
            self.stdout.write(f"did you mean {' or '.join(suggestion.words)} for {suggestion.term}?")


def _search(query: str, slug: str | None, ranker: str | None, limit: int | None) -> SearchOutcome:
    if limit is not None and not 1 <= limit <= RESULTS:
        raise CommandError(f"--limit must be from 1 to {RESULTS}")
    if slug is None:
        return search.search_catalog(query=query, ranker=ranker or Ranker.BM25F, limit=limit or 5)
    policy = Policy.objects.filter(slug=slug).first()
    if policy is None:
        raise CommandError(f"there is no policy {slug}")
    most = min(limit or policy.max_results, policy.max_results)
    return search.search_policy(policy=policy, query=query, ranker=ranker, limit=most)


def _read_matches(outcome: SearchOutcome) -> Iterator[dict[str, Any]]:
    """The hits with their tools; a tool deleted since the index was built is left out."""
    ids = [hit.id for hit in outcome.hits]
    tools = {tool.pk: tool for tool in Tool.objects.filter(pk__in=ids).select_related("server")}
    for hit in outcome.hits:
        if tool := tools.get(hit.id):
            yield {
                "name": tool.qualified_name,
                "server": tool.server.name,
                "tool": tool.name,
                "title": tool.title,
                "description": tool.description,
                "score": hit.score,
                "by": hit.by,
                "parts": [asdict(part) for part in hit.parts],
            }
