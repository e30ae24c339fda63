"""`manage.py rotate_secrets`: seal every stored secret with the newest encryption key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.sealing import SealBroken
from catalog.services import connections


class Command(BaseCommand):
    help = "Seal every stored secret with the first key of TOOLSEARCH_ENCRYPTION_KEY; then older keys can go."

    def handle(self, **options: Any) -> None:
        try:
            count = connections.rotate_secrets()
        except SealBroken as broken:
            raise CommandError(str(broken)) from None
        self.stdout.write(f"sealed the secrets of {count} servers with the newest key")
