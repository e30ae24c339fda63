"""A server's secrets are encrypted with the newest key and decrypted with every key that is kept."""

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from pytest_django import Settings

from catalog.domain.choices import Transport
from catalog.domain.connection import Connection
from catalog.models import Server
from catalog.sealing import SealBroken
from catalog.services import connections
from tests.harness.rows import make_server

pytestmark = pytest.mark.django_db

HTTP = Connection(
    Transport.HTTP,
    url="https://user:pass-canary@mcp.example.com/path?key=query-canary#part",
    headers={"Authorization": "Bearer header-canary"},
)


def store(connection: Connection) -> Server:
    server = make_server(transport="http", url="https://mcp.example.com")
    connections.write_connection(server, connection)
    server.save()
    return Server.objects.get(pk=server.pk)


def test_connection_comes_back_whole_and_shows_no_secret() -> None:
    server = store(HTTP)
    assert connections.read_connection(server) == HTTP
    assert server.url == "https://mcp.example.com/path"
    assert "canary" not in str(list(Server.objects.values()))


def test_token_in_the_path_is_not_shown() -> None:
    url = "https://mcp.example.com/s/ghp_0123456789abcdefABCDEF0123456789abcd/mcp"
    server = store(Connection(Transport.HTTP, url=url))
    assert "ghp_" not in server.url
    assert connections.read_connection(server).url == url


def test_nothing_secret_seals_nothing() -> None:
    assert store(Connection(Transport.HTTP, url="https://mcp.example.com/path")).sealed == ""


def test_old_key_opens_until_it_is_dropped_after_rotation(settings: Settings) -> None:
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    settings.ENCRYPTION_KEYS = (old,)
    server = store(HTTP)
    settings.ENCRYPTION_KEYS = (new, old)
    assert connections.read_connection(server) == HTTP
    call_command("rotate_secrets", verbosity=0)
    settings.ENCRYPTION_KEYS = (new,)
    assert connections.read_connection(Server.objects.get()) == HTTP
    with pytest.raises(SealBroken):
        connections.read_connection(server)
