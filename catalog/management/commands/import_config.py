"""`manage.py import_config FILE`: imports an existing config of any dialect and format."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog import documents, tasks
from catalog.access.actors import COMMAND_LINE
from catalog.domain.errors import ToolSearchError
from catalog.domain.policy import DEFAULT_SLUG
from catalog.management.inputs import read_input
from catalog.services import config, derived_state, import_plans


class Command(BaseCommand):
    help = "Add or update servers and search settings from the config of any client; - is standard input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file")
        parser.add_argument("--policy", default=DEFAULT_SLUG, metavar="SLUG")
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would change, and change nothing"
        )
        parser.add_argument("--only", metavar="NAME,…", help="take these servers alone")
        parser.add_argument("--json", action="store_true")

    def handle(
        self, *, file: str, policy: str, dry_run: bool, only: str | None = None, **options: Any
    ) -> None:
        try:
            plan = config.import_config(
                config=documents.read_config_text(read_input(file)),
                policy_slug=policy,
                actor=COMMAND_LINE,
                dry_run=dry_run,
                only=None if only is None else [name.strip() for name in only.split(",") if name.strip()],
            )
        except ToolSearchError as error:
            raise CommandError(str(error)) from None
        if not dry_run:
            derived_state.bring_up_to_date()
            tasks.wake_workers()
        for refused in plan.refused:
            self.stderr.write(f"{refused.name}: refused: {refused.reason}")
        for server, keys in plan.ignored.items():
            self.stderr.write(f"{server}: not read: {', '.join(keys)}")
        if plan.ignored_keys:
            self.stderr.write(f"not read: {', '.join(plan.ignored_keys)}")
        if options["json"]:
            self.stdout.write(json.dumps({**asdict(plan), "dry_run": dry_run}, indent=2))
        else:
            self._report(plan, dry_run=dry_run)

    def _report(self, plan: import_plans.ImportPlan, *, dry_run: bool) -> None:
        if dry_run:
            self.stdout.write("dry run: nothing is stored")
        for one in plan.servers:
            missing = f"; not set: {', '.join(one.missing)}" if one.missing else ""
            self.stdout.write(f"{one.action} {one.name}: {one.target or one.reason}{missing}")
        for label, names in (("added", plan.added), ("changed", plan.changed), ("unchanged", plan.unchanged)):
            self.stdout.write(f"{len(names)} {label}{': ' if names else ''}{', '.join(names)}")
        if plan.replaced:
            told = ", ".join(plan.replaced)
            self.stdout.write(f"another command or address, which cannot be undone: {told}")
        if plan.disabled:
            self.stdout.write(f"{len(plan.disabled)} disabled, not asked: {', '.join(plan.disabled)}")
        for field, value in plan.policy_changes.items():
            self.stdout.write(f"policy {plan.policy}: {field} = {json.dumps(value)}")
