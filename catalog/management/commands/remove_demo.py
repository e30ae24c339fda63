"""`manage.py remove_demo`: the demo's servers, tools and saved queries go."""

from typing import Any

from django.core.management.base import BaseCommand

from catalog.access.actors import COMMAND_LINE
from catalog.services import demo, derived_state


class Command(BaseCommand):
    help = "Remove the demo catalog: its servers, their tools and its saved queries."

    def handle(self, **options: Any) -> None:
        removed = demo.remove_demo(actor=COMMAND_LINE)
        if removed is None:
            self.stdout.write("there is no demo here")
            return
        derived_state.bring_up_to_date()
        self.stdout.write(f"removed {removed}")
