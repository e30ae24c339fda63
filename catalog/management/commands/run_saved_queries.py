"""`manage.py run_saved_queries`: checks that search still finds what it should; exits 1 where it does not."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.domain.errors import NotFound
from catalog.selectors.policies import find_policy
from catalog.selectors.saved_queries import SavedRow, SavedSet, read_set, sets_in_brief
from catalog.services import derived_state, saved_runs


class Command(BaseCommand):
    help = "Run the saved queries now, and fail when one does not find its tools among the first five."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--policy", metavar="SLUG", help="only those of one policy")
        parser.add_argument("--json", action="store_true")

    def handle(self, *, policy: str | None, **options: Any) -> None:
        derived_state.bring_up_to_date()
        slugs = [policy] if policy else [one.slug for one in sets_in_brief()]
        sets = [_run(slug) for slug in slugs]
        if options["json"]:
            rows = [_describe(one, row) for one in sets for row in one.rows]
            self.stdout.write(json.dumps(rows, indent=2, ensure_ascii=False))
        else:
            self._report(sets)
        if any(one.failing for one in sets):
            sys.exit(1)

    def _report(self, sets: list[SavedSet]) -> None:
        for one in sets:
            for row in one.rows:
                self.stdout.write(f"{'passes' if row.passed else 'fails':8}{row.saved.query}")
            if one.run is not None:
                passed = f"{one.run.passed} of {one.run.queries} pass"
                self.stdout.write(f"{one.policy.slug}: {passed}, R@5 {one.run.recall:.3f}")
        if not any(one.rows for one in sets):
            self.stdout.write("no query is saved")


def _run(slug: str) -> SavedSet:
    try:
        policy = find_policy(slug)
    except NotFound as error:
        raise CommandError(str(error)) from None
    saved_runs.run_policy(policy)
    return read_set(policy)


def _describe(one: SavedSet, row: SavedRow) -> dict[str, object]:
    return {
        "policy": one.policy.slug,
        "query": row.saved.query,
        "passed": bool(row.passed),
        "places": {tool.name: tool.place for tool in row.expected},
    }
