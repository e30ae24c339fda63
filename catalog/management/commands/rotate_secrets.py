"""`manage.py rotate_secrets`: encrypts stored secrets and signs the change record with the newest key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.domain.errors import Conflict
from catalog.sealing import SealBroken
from catalog.services import change_signatures, connections


class Command(BaseCommand):
    help = (
        "Encrypt stored secrets and sign the change record with the first key of TOOLSEARCH_ENCRYPTION_KEY;"
        " then older keys can go."
    )

    def handle(self, **options: Any) -> None:
        try:
            servers = connections.rotate_secrets()
            changes = change_signatures.sign_again()
        except (SealBroken, Conflict) as broken:
            raise CommandError(str(broken)) from None
        self.stdout.write(
            f"encrypted the secrets of {servers} servers and signed {changes} changes with the newest key"
        )
