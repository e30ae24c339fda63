"""Stores what a server offers beside its tools, as a refresh lists it."""

from dataclasses import asdict

from catalog.domain.connection import Features
from catalog.models import Server, ServerFeatures


def store_features(*, server: Server, listed: Features) -> bool:
    """Whether they differ from those stored: then the caller has the lists of agents follow."""
    wanted = {
        name: list(value) if isinstance(value, tuple) else value for name, value in asdict(listed).items()
    }
    row = ServerFeatures.objects.filter(server=server).first()
    present = row or ServerFeatures(server=server)
    if all(getattr(present, name) == value for name, value in wanted.items()):
        return False
    ServerFeatures.objects.update_or_create(server=server, defaults=wanted)
    return True
