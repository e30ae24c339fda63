"""`manage.py rotate_secrets`: seal every stored secret and the change record with the newest key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.domain.errors import Conflict
from catalog.sealing import SealBroken
from catalog.services import change_seals, connections


class Command(BaseCommand):
    help = (
        "Seal every stored secret and the change record with the first key of TOOLSEARCH_ENCRYPTION_KEY;"
        " then older keys can go."
    )

    def handle(self, **options: Any) -> None:
        try:
            servers = connections.rotate_secrets()
            changes = change_seals.seal_anew()
        except (SealBroken, Conflict) as broken:
            raise CommandError(str(broken)) from None
        self.stdout.write(
            f"sealed the secrets of {servers} servers and {changes} changes with the newest key"
        )
